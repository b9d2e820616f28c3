"""How many callback URLs are checked at once, since each check holds a drive of the process."""

from __future__ import annotations

import asyncio
from typing import Any
from unittest.mock import AsyncMock, MagicMock

import pytest

from libs.contracts.errors import Unavailable
from libs.contracts.principal import Family, Principal
from libs.contracts.result import Result
from libs.contracts.webhooks import CreateSubscription, UpdateSubscription
from libs.handling.driving import DRIVES_AT_ONCE
from services.webhook_dispatcher.handlers import subscriptions
from services.webhook_dispatcher.handlers.batches import Batches
from services.webhook_dispatcher.handlers.subscriptions import (
    CHECKS_AT_ONCE,
    CHECKS_OF_TENANT_AT_ONCE,
    CHECKS_WAITING,
    SubscriptionCommands,
)

URL = "https://hooks.example.com/"
OF_TENANT = CHECKS_OF_TENANT_AT_ONCE + CHECKS_WAITING // 2
"""As many as one tenant may have that are checked or wait."""


class Silent:
    """Names whose servers do not answer before a test says so."""

    def __init__(self) -> None:
        self.answer = asyncio.Event()
        self.asked = 0

    async def check(self, url: str, tenant: str) -> None:
        self.asked += 1
        await self.answer.wait()


class Office:
    """Commands as their drives begin; nothing is stored."""

    def __init__(self) -> None:
        self.names = Silent()
        self.outcomes = MagicMock(recall=AsyncMock(return_value=None), change=AsyncMock())
        self._commands = SubscriptionCommands(
            self.outcomes, MagicMock(), self.names, MagicMock(), Batches()
        )

    async def create(self, tenant: str) -> Result:
        command = CreateSubscription(event_types="*", callback_url=URL)
        return await self._commands.create(_drive(tenant), command)

    async def update(self, tenant: str) -> Result:
        command = UpdateSubscription.model_validate({"subscription_id": "any", "callback_url": URL})
        return await self._commands.update(_drive(tenant), command)

    async def start(self, count: int, tenant: str) -> list[asyncio.Task[Result]]:
        tasks = [asyncio.create_task(self.create(tenant)) for _ in range(count)]
        for _ in range(3):
            await asyncio.sleep(0)
        return tasks


def _drive(tenant: str) -> Any:
    return MagicMock(principal=Principal(tenant, "Tenant", Family.PARTNER, "sub_test", None))


async def test_a_tenant_whose_names_are_silent_leaves_checks_to_others() -> None:
    office = Office()
    slow = await office.start(OF_TENANT, "anvil")
    asked_of_one = office.names.asked

    others = await office.start(1, "bolt")

    assert asked_of_one == CHECKS_OF_TENANT_AT_ONCE
    assert office.names.asked == CHECKS_OF_TENANT_AT_ONCE + 1
    office.names.answer.set()
    await asyncio.gather(*slow, *others)
    assert office.names.asked == office.outcomes.change.await_count == OF_TENANT + 1


async def test_beyond_its_share_a_tenants_command_is_refused_and_started_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(subscriptions, "owned", AsyncMock())
    office = Office()
    slow = await office.start(OF_TENANT, "anvil")

    for command in (office.create, office.update):
        with pytest.raises(Unavailable):
            await command("anvil")

    assert not office.outcomes.change.await_count
    office.names.answer.set()
    await asyncio.gather(*slow)


async def test_checks_of_all_tenants_leave_drives_to_other_commands() -> None:
    assert CHECKS_AT_ONCE + CHECKS_WAITING < DRIVES_AT_ONCE
