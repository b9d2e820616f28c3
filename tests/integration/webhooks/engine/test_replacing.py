"""An endpoint that is replaced, while attempts are under way to the one before, which say nothing about the new one."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace
from datetime import timedelta
from uuid import UUID

import pytest

from libs.contracts.principal import Family, Principal
from libs.contracts.webhook_views import SubscriptionStatus
from services.webhook_dispatcher.engine.health import BREAKER_ATTEMPTS
from services.webhook_dispatcher.engine.rules import DeliverySettings
from services.webhook_dispatcher.engine.unavailability import Unavailability
from services.webhook_dispatcher.repository import endpoints, recording, subscriptions
from services.webhook_dispatcher.repository.partitions import Partitions
from tests.integration.webhooks.engine.rig import Rig, an_event
from tests.support.waiting import eventually

CUSTOMER = Principal("t_1", "Tenant", Family.CUSTOMER, "sub_test", "c_1")


async def replaced(rig: Rig, subscription_id: UUID, path: str) -> None:
    """As its owner does who sends another URL, or makes it active again."""
    async with rig.database.transaction() as connection:
        known = await subscriptions.find(connection, CUSTOMER, subscription_id, for_change=True)
        assert known is not None
        await subscriptions.reset_endpoint(connection, subscription_id)
        await recording.lock_positions(connection)
        url, active = rig.receiver.url + path, SubscriptionStatus.ACTIVE
        await subscriptions.save(connection, replace(known, callback_url=url, status=active))


async def another_url(rig: Rig, subscription_id: UUID) -> None:
    await replaced(rig, subscription_id, "/new")


async def active_again(rig: Rig, subscription_id: UUID) -> None:
    await rig.change("UPDATE subscription SET status = 'unavailable'")
    await replaced(rig, subscription_id, "/old")


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

    async with rig.engine() as publisher:
        await publisher.publish([an_event()])
        await eventually("one under way", lambda: hanging(rig, 1))
        await change(rig, subscription)
        rig.receiver.let_go.set()
        await eventually("its end", lambda: attempted(rig, subscription, 1))
        rig.receiver.statuses.clear()
        rig.later(seconds=10)
        await eventually("a second attempt", lambda: attempted(rig, subscription, 2))

    assert await rig.status(subscription) == "active"
    first, second = await rig.attempts(subscription)
    assert (first.response_status, first.concluded) == (410, None)
    assert (second.response_status, second.concluded) == (200, "succeeded")


async def test_timeouts_at_the_url_before_do_not_open_the_breaker_of_the_new_one(rig: Rig) -> None:
    subscription = await rig.subscribe("/old")
    rig.receiver.hanging.add("/old")

    async with rig.engine(post_seconds=3.0) as publisher:
        await publisher.publish([an_event(n) for n in range(BREAKER_ATTEMPTS + 1)])
        await eventually("all under way", lambda: hanging(rig, BREAKER_ATTEMPTS + 1))
        await another_url(rig, subscription)
        await eventually("their ends", lambda: attempted(rig, subscription, BREAKER_ATTEMPTS + 1))

    endpoint = await rig.endpoint(subscription)
    assert (endpoint.unreachable_in_a_row, endpoint.open_until) == (0, None)


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
