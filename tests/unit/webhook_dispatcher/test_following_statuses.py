"""How many subscriptions' deliveries follow a changed status at once, since each batch uses a connection."""

from __future__ import annotations

import asyncio
from typing import Any
from unittest.mock import AsyncMock, MagicMock
from uuid import uuid4

import pytest

from libs.contracts.errors import OutcomePending
from libs.contracts.principal import Family, Principal
from libs.contracts.result import Result
from libs.contracts.webhooks import DeleteSubscription
from services.webhook_dispatcher.handlers.batches import (
    BATCHES_OF_TENANT_AT_ONCE,
    BATCHES_WAITING,
    Batches,
)
from services.webhook_dispatcher.handlers.subscriptions import STRAYS_AT_ONCE, SubscriptionCommands
from services.webhook_dispatcher.repository import strays

OF_TENANT = BATCHES_OF_TENANT_AT_ONCE + BATCHES_WAITING // 2
"""As many as one tenant may have whose deliveries are changed, or wait for it."""


class Office:
    """Commands whose change of a subscription is committed, and batches that end when a test says so."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(strays, "change", self._change)
        self.may_end = asyncio.Event()
        self.batches = 0
        self.full_batches = 0
        """How many of the next batches leave some for another one."""
        deleted = AsyncMock(return_value=MagicMock(subscription_id=str(uuid4())))
        self._commands = SubscriptionCommands(
            MagicMock(change=deleted), MagicMock(), MagicMock(), lambda: None, Batches()
        )

    async def delete(self, tenant: str) -> Result:
        command = DeleteSubscription(subscription_id=str(uuid4()))
        return await self._commands.delete(_drive(tenant), command)

    async def start(self, count: int, tenant: str) -> list[asyncio.Task[Result]]:
        tasks = [asyncio.create_task(self.delete(tenant)) for _ in range(count)]
        for _ in range(3):
            await asyncio.sleep(0)
        return tasks

    async def _change(self, *_: object) -> int | None:
        self.batches += 1
        await self.may_end.wait()
        if not self.full_batches:
            return None
        self.full_batches -= 1
        return STRAYS_AT_ONCE


def _drive(tenant: str) -> Any:
    return MagicMock(principal=Principal(tenant, "Tenant", Family.PARTNER, "sub_test", None))


async def test_a_tenant_that_changes_many_subscriptions_leaves_connections_to_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    office = Office(monkeypatch)
    many = await office.start(OF_TENANT, "anvil")
    batches_of_one = office.batches

    others = await office.start(1, "bolt")

    assert batches_of_one == BATCHES_OF_TENANT_AT_ONCE
    assert office.batches == BATCHES_OF_TENANT_AT_ONCE + 1
    office.may_end.set()
    await asyncio.gather(*many, *others)
    assert office.batches == OF_TENANT + 1


async def test_beyond_its_share_a_tenants_change_is_driven_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    office = Office(monkeypatch)
    many = await office.start(OF_TENANT, "anvil")

    with pytest.raises(OutcomePending):
        await office.delete("anvil")

    office.may_end.set()
    await asyncio.gather(*many)


async def test_a_change_that_has_begun_goes_on_while_as_many_as_may_of_its_tenant_wait(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    office = Office(monkeypatch)
    office.full_batches = OF_TENANT
    many = await office.start(OF_TENANT, "anvil")

    office.may_end.set()
    await asyncio.gather(*many)

    assert office.batches == 2 * OF_TENANT
