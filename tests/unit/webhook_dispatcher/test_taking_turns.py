"""Which commands of a subscription wait for one another, and how recoveries of a tenant take turns."""

from __future__ import annotations

import asyncio
from collections import Counter
from datetime import UTC, datetime, timedelta
from typing import Any
from unittest.mock import MagicMock
from uuid import uuid4

import pytest

from libs.contracts import webhook_operations as table
from libs.contracts.errors import OutcomePending
from libs.contracts.principal import Family, Principal
from libs.contracts.result import Result
from libs.contracts.webhook_operations import FamilyPair
from libs.contracts.webhooks import RecoverSubscription
from libs.handling.acceptance import Arriving
from services.webhook_dispatcher.app import in_order_of_subscription
from services.webhook_dispatcher.handlers.batches import (
    BATCHES_AT_ONCE,
    BATCHES_OF_TENANT_AT_ONCE,
    BATCHES_WAITING,
    Batches,
)
from services.webhook_dispatcher.handlers.recovery import Progress, RecoveryHandler

OF_TENANT = BATCHES_OF_TENANT_AT_ONCE + BATCHES_WAITING // 2
"""As many commands as one tenant may have that change deliveries, or wait for it."""
LONG = 50
NOW = datetime(2026, 1, 31, tzinfo=UTC)


class Recoveries:
    """Recoveries of so many batches each, which end when a test says so."""

    def __init__(self) -> None:
        self.may_go_on = asyncio.Event()
        self.running = Counter[str]()
        self.most_at_once = 0
        self._batches_left: dict[str, int] = {}
        outcomes = MagicMock(step=self._step)
        self._handle = RecoveryHandler(outcomes, timedelta(days=30), lambda: None, Batches())

    async def recover(self, batches: int, tenant: str = "anvil") -> Result:
        subscription_id = str(uuid4())
        self._batches_left[subscription_id] = batches
        drive = MagicMock(principal=partner(tenant), command_id=subscription_id)
        command = RecoverSubscription(subscription_id=subscription_id, since=NOW)
        return await self._handle(drive, command)

    async def start(
        self, count: int, batches: int, tenant: str = "anvil"
    ) -> list[asyncio.Task[Result]]:
        tasks = [asyncio.create_task(self.recover(batches, tenant)) for _ in range(count)]
        await asyncio.sleep(0)
        return tasks

    async def _step(self, drive: Any, *_: object) -> Progress:
        tenant = drive.principal.tenant
        self.running[tenant] += 1
        self.most_at_once = max(self.most_at_once, self.running.total())
        await self.may_go_on.wait()
        await asyncio.sleep(0)
        self.running[tenant] -= 1
        self._batches_left[drive.command_id] -= 1
        is_done = not self._batches_left[drive.command_id]
        return Progress(until=NOW, phase="done" if is_done else "failed")


def partner(tenant: str) -> Principal:
    return Principal(tenant, "Tenant", Family.PARTNER, "sub_test", None)


def customer(tenant: str, customer_id: str) -> Principal:
    return Principal(tenant, "Tenant", Family.CUSTOMER, "sub_test", customer_id)


async def ordering_key(
    principal: Principal, subscription_id: str, pair: FamilyPair = table.RECOVER_SUBSCRIPTION
) -> str | None:
    operation = pair.of(principal.family).name
    body = {"subscription_id": subscription_id}
    return await in_order_of_subscription(
        MagicMock(), Arriving(uuid4(), operation, principal, body)
    )


async def test_a_recovery_waits_for_those_of_the_same_subscription_and_subscriber_alone() -> None:
    ada, bea = customer("anvil", str(uuid4())), customer("anvil", str(uuid4()))
    subscriptions = [str(uuid4()) for _ in range(5)]

    keys = [
        await ordering_key(principal, subscription_id)
        for principal in (ada, bea, partner("anvil"), partner("bolt"))
        for subscription_id in subscriptions
    ]

    assert len(set(keys)) == 4 * len(subscriptions)
    assert None not in keys
    assert await ordering_key(ada, subscriptions[0].upper()) == keys[0]


async def test_changes_of_a_subscription_wait_for_one_another_alone_and_so_do_rotations() -> None:
    ada, bea = customer("anvil", str(uuid4())), customer("anvil", str(uuid4()))
    one, other = str(uuid4()), str(uuid4())
    changes = (table.UPDATE_SUBSCRIPTION, table.DELETE_SUBSCRIPTION)

    keys = {await ordering_key(ada, one, pair) for pair in changes}

    assert len(keys) == 1
    assert keys.isdisjoint(
        {
            None,
            await ordering_key(ada, one),
            await ordering_key(ada, one, table.ROTATE_SECRET),
            await ordering_key(ada, other, table.UPDATE_SUBSCRIPTION),
            await ordering_key(bea, one, table.UPDATE_SUBSCRIPTION),
        }
    )


async def test_recoveries_of_a_tenant_leave_connections_to_others() -> None:
    recoveries = Recoveries()

    many = await recoveries.start(OF_TENANT, 1)
    others = await recoveries.start(BATCHES_AT_ONCE, 1, "bolt")

    assert recoveries.running["anvil"] == BATCHES_OF_TENANT_AT_ONCE
    assert recoveries.running["bolt"] == BATCHES_OF_TENANT_AT_ONCE
    recoveries.may_go_on.set()
    await asyncio.gather(*many, *others)
    assert recoveries.most_at_once == BATCHES_AT_ONCE


async def test_a_short_recovery_is_done_between_the_batches_of_long_ones() -> None:
    recoveries = Recoveries()
    recoveries.may_go_on.set()
    long_ones = await recoveries.start(OF_TENANT - 2, LONG)

    await recoveries.recover(2)

    assert not any(one.done() for one in long_ones)
    await asyncio.gather(*long_ones)


async def test_beyond_its_share_a_tenants_recovery_is_driven_again() -> None:
    recoveries = Recoveries()
    many = await recoveries.start(OF_TENANT, 1)

    with pytest.raises(OutcomePending):
        await recoveries.recover(1)

    recoveries.may_go_on.set()
    await asyncio.gather(*many)


async def test_a_long_recovery_leaves_its_place_when_all_of_its_tenant_are_taken() -> None:
    recoveries = Recoveries()
    long_ones = await recoveries.start(OF_TENANT, LONG)

    recoveries.may_go_on.set()
    await asyncio.wait(long_ones, return_when=asyncio.FIRST_COMPLETED)
    await recoveries.recover(1)
    ended = await asyncio.gather(*long_ones, return_exceptions=True)

    assert any(isinstance(one, OutcomePending) for one in ended)
    assert any(isinstance(one, Result) for one in ended)
