"""An endpoint that is replaced, while attempts are under way to the one before, which say nothing about the new one."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from datetime import timedelta
from uuid import UUID

import pytest
from sqlalchemy import text

from libs.contracts.principal import Family, Principal
from libs.contracts.webhook_views import SubscriptionStatus
from services.webhook_dispatcher.engine.health import BREAKER_ATTEMPTS
from services.webhook_dispatcher.engine.rules import DeliverySettings
from services.webhook_dispatcher.engine.unavailability import Unavailability
from services.webhook_dispatcher.ports import Attempt, AttemptOutcome, Post
from services.webhook_dispatcher.repository import endpoints, recording, subscriptions
from services.webhook_dispatcher.repository.partitions import Partitions
from tests.integration.webhooks.engine.rig import Rig, an_event
from tests.support.waiting import eventually

CUSTOMER = Principal("t_1", "Tenant", Family.CUSTOMER, "sub_test", "c_1")


async def replaced(rig: Rig, subscription_id: UUID, path: str, before: str = "active") -> None:
    """As its owner does who sends another URL, or makes it active again. In one transaction with the status `before`,
    by which the upkeep of the engine would hold what is under way.
    """
    async with rig.database.transaction() as connection:
        await connection.execute(
            text("UPDATE subscription SET status = :before"), {"before": before}
        )
        known = await subscriptions.find(connection, CUSTOMER, subscription_id, for_change=True)
        assert known is not None
        await subscriptions.reset_endpoint(connection, subscription_id)
        await recording.lock_positions(connection)
        url, active = rig.receiver.url + path, SubscriptionStatus.ACTIVE
        await subscriptions.save(connection, replace(known, callback_url=url, status=active))


async def another_url(rig: Rig, subscription_id: UUID) -> None:
    await replaced(rig, subscription_id, "/new")


async def active_again(rig: Rig, subscription_id: UUID) -> None:
    await replaced(rig, subscription_id, "/old", before="unavailable")


async def hanging(rig: Rig, count: int) -> bool:
    return rig.receiver.at_once["/old"] == count


async def attempted(rig: Rig, subscription_id: UUID, count: int) -> bool:
    return len(await rig.attempts(subscription_id)) == count


@pytest.mark.parametrize("change", [another_url, active_again])
async def test_410_of_the_endpoint_before_makes_nothing_unavailable(
    rig: Rig, change: Callable[[Rig, UUID], Awaitable[None]]
) -> None:
    subscription = await rig.subscribe("/old")
    rig.receiver.hanging.add("/old")
    rig.receiver.statuses["/old"] = 410
    rig.clock.stand_still()

    async with rig.engine() as publisher:
        await publisher.publish([an_event()])
        await eventually("one under way", lambda: hanging(rig, 1))
        await change(rig, subscription)
        rig.receiver.let_go.set()
        await eventually("its end", lambda: attempted(rig, subscription, 1))
        rig.receiver.statuses.clear()
        rig.later(hours=1)
        await eventually("a second attempt", lambda: attempted(rig, subscription, 2))

    assert await rig.status(subscription) == "active"
    first, second = await rig.attempts(subscription)
    assert (first.response_status, first.concluded) == (410, None)
    assert (second.response_status, second.concluded) == (200, "succeeded")


async def test_timeouts_at_the_url_before_do_not_open_the_breaker_of_the_new_one(rig: Rig) -> None:
    subscription = await rig.subscribe("/old")
    poster = TimingOut(rig)
    rig.clock.stand_still()

    async def all_under_way() -> bool:
        return poster.under_way == BREAKER_ATTEMPTS + 1

    async with rig.engine(poster=poster) as publisher:
        await publisher.publish([an_event(n) for n in range(BREAKER_ATTEMPTS + 1)])
        await eventually("all under way", all_under_way)
        await another_url(rig, subscription)
        poster.time_is_up.set()
        await eventually("their ends", lambda: attempted(rig, subscription, BREAKER_ATTEMPTS + 1))

    endpoint = await rig.endpoint(subscription)
    assert (endpoint.unreachable_in_a_row, endpoint.open_until) == (0, None)


class TimingOut:
    """All its posts time out, when the test says so."""

    def __init__(self, rig: Rig) -> None:
        self._rig = rig
        self.under_way = 0
        self.time_is_up = asyncio.Event()

    async def post(self, post: Post) -> Attempt:
        self.under_way += 1
        await self.time_is_up.wait()
        return Attempt(
            outcome=AttemptOutcome.TIMED_OUT, attempted_at=self._rig.clock(), duration_ms=15_000
        )


@pytest.mark.parametrize("answered_410", [True, False])
async def test_what_was_learned_of_the_endpoint_before_gives_up_no_other(
    rig: Rig, answered_410: bool
) -> None:
    partitions, settings = Partitions(rig.database), DeliverySettings()
    unavailability = Unavailability(rig.database, partitions, settings, rig.clock, lambda: None)
    subscription = await rig.subscribe("/old")
    await rig.change(
        "UPDATE endpoint SET last_success_at = :at, failing_since = :at, failed_events = 100",
        at=rig.clock() - timedelta(days=6),
    )
    async with rig.database.driver() as connection:
        health = (await endpoints.read(connection, [subscription]))[subscription]

    await another_url(rig, subscription)
    await unavailability.consider(subscription, health, answered_410=answered_410)

    assert await rig.status(subscription) == "active"
