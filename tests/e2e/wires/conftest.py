"""These tests share one running stack per worker, and senders in it."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from tests.e2e.wires.hands import Sender, sender_of
from tests.support.live import Live

FUNDS = Decimal("100000.00")


@pytest.fixture(scope="package")
def onboarded() -> dict[str, Any]:
    return {}


async def shared(live: Live, onboarded: dict[str, Any], name: str, tenant: str) -> Sender:
    if name not in onboarded:
        onboarded[name] = await live.onboarded(api=await live.of_tenant(tenant))
        await live.bank.deposit(onboarded[name]["business"]["account_id"], FUNDS)
    return await sender_of(live, onboarded[name])


@pytest.fixture
async def sender(live: Live, onboarded: dict[str, Any]) -> Sender:
    """With funds for every test; what other tests sent is there too."""
    return await shared(live, onboarded, "sender", "anvil")


@pytest.fixture
async def others(live: Live, onboarded: dict[str, Any]) -> list[Sender]:
    """Another customer of the same partner, and another partner's."""
    neighbour = await shared(live, onboarded, "neighbour", "anvil")
    return [neighbour, await shared(live, onboarded, "stranger", "wires-stranger")]
