"""What becomes of a delivery that fails, and of the endpoint that it fails at."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from services.webhook_dispatcher.engine import unavailability
from services.webhook_dispatcher.engine.attempts import NOT_TRIED_SECONDS
from services.webhook_dispatcher.engine.health import FAILED_EVENTS
from services.webhook_dispatcher.engine.rules import RETRY_SECONDS, DeliverySettings
from services.webhook_dispatcher.handlers.subscriptions import change_strays
from services.webhook_dispatcher.ports import Attempt, AttemptOutcome, Post
from services.webhook_dispatcher.repository import recovery
from tests.integration.webhooks.engine.rig import LEASE_SECONDS, Rig, an_event
from tests.support.waiting import eventually

REFUSING = "http://127.0.0.1:9/refusing"
"""Nobody listens at the discard port."""


async def attempted(rig: Rig, subscription_id: UUID, count: int) -> list[Any]:
    attempts = await rig.attempts(subscription_id)
    assert len(attempts) == count
    return attempts


async def is_over(rig: Rig, subscription_id: UUID) -> bool:
    return not await rig.deliveries(subscription_id)


async def test_a_delivery_is_tried_ten_times_on_schedule_and_then_failed(rig: Rig) -> None:
    subscription = await rig.subscribe("/a")
    rig.receiver.statuses["/a"] = 500
    rig.clock.stand_still()

    async with rig.engine() as publisher:
        await publisher.publish([event := an_event()])
        for made, pause in enumerate(RETRY_SECONDS, start=1):
            *_, last = await eventually(
                "an attempt",
                lambda made=made: attempted(rig, subscription, made),  # type: ignore[misc]
            )
            [delivery] = await rig.deliveries(subscription)
            ended_at = last.attempted_at + timedelta(milliseconds=last.duration_ms)
            assert delivery.due_at - ended_at == timedelta(seconds=pause)
            rig.later(seconds=(delivery.due_at - rig.clock()).total_seconds())
        attempts = await eventually("the last", lambda: attempted(rig, subscription, 10))
        await eventually("the end", lambda: is_over(rig, subscription))

    assert [row.number for row in attempts] == list(range(1, 11))
    assert [row.concluded for row in attempts] == [None] * 9 + ["failed"]
    received = rig.receiver.of("/a")
    assert {one.event_id for one in received} == {event.event_id}
    assert {one.body for one in received} == {event.body}
    timestamps = [int(one.headers["webhook-timestamp"]) for one in received]
    assert timestamps == sorted(set(timestamps))
    assert len({one.headers["webhook-signature"] for one in received}) == 10
    assert (await rig.endpoint(subscription)).failed_events == 1


class Hindered:
    """Tries nothing, for a reason of our own, until it may."""

    def __init__(self) -> None:
        self.tried = 0

    async def post(self, post: Post) -> Attempt:
        self.tried += 1
        return Attempt(
            outcome=AttemptOutcome.NOT_TRIED,
            attempted_at=datetime.now(UTC),
            duration_ms=0,
            error="Not yet.",
        )


async def test_what_we_did_not_try_takes_nothing_from_the_schedule_while_a_schedule_lasts(
    rig: Rig,
) -> None:
    subscription = await rig.subscribe("/a")
    hindered = Hindered()

    async def was_given_back(times: int) -> bool:
        for delivery in await rig.deliveries(subscription):
            waits = (delivery.due_at - rig.clock()).total_seconds()
            return hindered.tried == times and delivery.claim is None and waits > 1
        return False

    async with rig.engine(poster=hindered) as publisher:
        await publisher.publish([an_event()])
        for times in range(1, 13):
            await eventually("given back", lambda times=times: was_given_back(times))  # type: ignore[misc]
            [delivery] = await rig.deliveries(subscription)
            assert delivery.attempts_made == 0
            assert (delivery.due_at - rig.clock()).total_seconds() <= NOT_TRIED_SECONDS
            rig.later(seconds=NOT_TRIED_SECONDS)

    assert await rig.attempts(subscription) == []
    old = "UPDATE delivery SET created_at = created_at - interval '4 days', due_at = clock_timestamp()"
    await rig.change(old)
    once_more = hindered.tried + 1  # the engine may have tried again as it ended
    async with rig.engine(poster=hindered):
        await eventually("as one that was held for long", lambda: was_given_back(once_more))
        await rig.change("UPDATE endpoint SET reset_at = reset_at - interval '4 days'")
        await rig.change(
            "UPDATE delivery SET due_at = clock_timestamp(), released_at = clock_timestamp()"
        )
        rig.wake()
        await eventually("as one that is recovered late", lambda: was_given_back(once_more + 1))
    assert await rig.attempts(subscription) == []

    await rig.change(
        "UPDATE delivery SET due_at = clock_timestamp(), released_at = released_at - interval '4 days'"
    )
    async with rig.engine(poster=hindered):
        await eventually("it counts by now", lambda: attempted(rig, subscription, 1))


async def test_retry_after_lengthens_the_pause(rig: Rig) -> None:
    subscription = await rig.subscribe("/a")
    rig.receiver.statuses["/a"] = 503
    rig.receiver.headers["Retry-After"] = format_datetime(
        rig.clock() + timedelta(minutes=20), usegmt=True
    )

    async with rig.engine() as publisher:
        await publisher.publish([an_event()])
        await eventually("an attempt", lambda: attempted(rig, subscription, 1))

    [delivery] = await rig.deliveries(subscription)
    assert 1100 < (delivery.due_at - rig.clock()).total_seconds() <= 1200


async def activated(rig: Rig, subscription_id: UUID) -> None:
    await change_strays(rig.database, subscription_id, "active")


async def recovered(rig: Rig, subscription_id: UUID) -> None:
    async with rig.database.transaction() as connection:
        now = await recovery.now(connection)
        since, after = now - timedelta(hours=1), recovery.BEGINNING
        await recovery.release_held(
            connection,
            subscription_id,
            since=since,
            until=now,
            first_kept=since.date(),
            after=after,
            limit=10,
        )


async def recovered_by_its_event(rig: Rig, subscription_id: UUID) -> None:
    [delivery] = await rig.deliveries(subscription_id)
    await rig.change(
        "INSERT INTO redelivery (subscription_id, event_id, delivery_id, created_at)"
        " SELECT subscription_id, event_id, id, created_at FROM delivery"
    )
    async with rig.database.transaction() as connection:
        await recovery.release_redeliveries(connection, subscription_id, [delivery.event_id])


async def test_a_held_delivery_that_is_due_again_has_its_whole_schedule_before_it(rig: Rig) -> None:
    subscription = await rig.subscribe("/a")
    rig.receiver.statuses["/a"] = 503
    rig.receiver.headers["Retry-After"] = "60"

    async with rig.engine() as publisher:
        await publisher.publish([an_event()])
        await eventually("an attempt", lambda: attempted(rig, subscription, 1))
        for count, release in enumerate((activated, recovered, recovered_by_its_event), start=2):
            await rig.change(
                "UPDATE delivery SET state = 'held', held_at = clock_timestamp(), attempts_made = :made",
                made=10 * count - 1,
            )
            await release(rig, subscription)
            rig.wake()
            *_, last = await eventually(
                release.__name__,
                lambda count=count: attempted(rig, subscription, count),  # type: ignore[misc]
            )
            assert (last.number, last.concluded) == (10 * count, None)
            [delivery] = await rig.deliveries(subscription)
            assert delivery.attempts_made == 10 * count
            asked = timedelta(seconds=60)
            assert last.attempted_at + asked <= delivery.due_at <= rig.clock() + asked


async def test_the_statement_of_the_production_page_holds_deliveries_of_a_restored_database(
    rig: Rig,
) -> None:
    page = (Path(__file__).parents[4] / "deploy" / "PRODUCTION.md").read_text()
    [statement] = re.findall(r'-c "(UPDATE webhook_dispatcher\.subscription .+)"', page)
    subscription = await rig.subscribe("/replaced")
    rig.receiver.statuses["/replaced"] = 503
    rig.clock.stand_still()
    async with rig.engine() as publisher:
        await publisher.publish([an_event()])
        await eventually("an attempt", lambda: attempted(rig, subscription, 1))

    await rig.change(statement)

    async def is_held() -> bool:
        return [row.state for row in await rig.deliveries(subscription)] == ["held"]

    async with rig.engine():
        rig.later(hours=1)
        await eventually("the delivery is held", is_held)
        assert len(rig.receiver.of("/replaced")) == 1
        url = rig.receiver.url + "/present"
        await rig.change("UPDATE subscription SET callback_url = :url, status = 'active'", url=url)
        await change_strays(rig.database, subscription, "active")
        rig.wake()
        await eventually("the end", lambda: is_over(rig, subscription))
    assert len(rig.receiver.of("/present")) == 1


@pytest.mark.parametrize("last_of_its_schedule", [True, False])
async def test_a_delivery_that_is_released_while_it_is_attempted_has_its_whole_schedule_before_it(
    rig: Rig, last_of_its_schedule: bool
) -> None:
    subscription = await rig.subscribe("/a")
    rig.receiver.statuses["/a"] = 503
    pauses = (3600.0,) if last_of_its_schedule else (3600.0, 3600.0)

    async def is_under_way() -> bool:
        return rig.receiver.at_once["/a"] == 1

    settings = DeliverySettings(retry_seconds=pauses, lease_seconds=LEASE_SECONDS)
    async with rig.engine(settings) as publisher:
        await publisher.publish([an_event()])
        await eventually("an attempt", lambda: attempted(rig, subscription, 1))
        rig.receiver.hanging.add("/a")
        rig.later(hours=2)
        await eventually("another under way", is_under_way)
        for status in ("disabled", "active"):
            await rig.change("UPDATE subscription SET status = :status", status=status)
            await change_strays(rig.database, subscription, status)

        rig.receiver.let_go.set()

        attempts = await eventually("at once", lambda: attempted(rig, subscription, 3))
        [delivery] = await rig.deliveries(subscription)
        assert [row.concluded for row in attempts] == [None] * 3
        assert (delivery.attempts_made, delivery.schedule_from) == (3, 2)
        assert 3000 < (delivery.due_at - rig.clock()).total_seconds() <= 5000


async def test_410_makes_the_subscription_unavailable_at_once_and_tells_the_others(
    rig: Rig,
) -> None:
    gone = await rig.subscribe("/gone", event_type="*")
    await rig.subscribe("/other", event_type="webhook_subscription")
    partner = await rig.subscribe("/partner", event_type="*", customer_id=None)
    rig.receiver.statuses["/gone"] = 410

    async with rig.engine() as publisher:
        await publisher.publish([an_event()])
        await eventually("unavailable", lambda: has_status(rig, gone, "unavailable"))
        [told] = await eventually("the event", lambda: received_at(rig, "/other", 1))
        await publisher.publish([an_event(2)])
        held = await eventually("all held", lambda: all_held(rig, gone, 3))

    assert told.event["type"] == "webhook_subscription.unavailable"
    assert told.event["sequence"] == 1
    assert told.event["data"]["subscription_id"] == str(gone)
    assert told.event["data"]["status"] == "unavailable"
    assert [row.attempts_made for row in held] == [1, 0, 0]
    assert len(rig.receiver.of("/gone")) == 1
    # A customer's callback URL is not its partner's to know.
    of_partner = [*await rig.deliveries(partner), *await rig.attempts(partner)]
    assert {row.event_type for row in of_partner} == {"person.updated"}


async def has_status(rig: Rig, subscription_id: UUID, status: str) -> bool:
    return await rig.status(subscription_id) == status


async def received_at(rig: Rig, path: str, count: int) -> list[Any]:
    found = rig.receiver.of(path)
    assert len(found) == count
    return found


async def all_held(rig: Rig, subscription_id: UUID, count: int) -> list[Any]:
    deliveries = await rig.deliveries(subscription_id)
    assert [row.state for row in deliveries] == ["held"] * count
    return deliveries


async def test_five_misses_open_the_breaker_and_waiting_spends_no_attempts(rig: Rig) -> None:
    subscription = await rig.subscribe("", url=REFUSING)
    other = await rig.subscribe("/other")
    rig.clock.stand_still()

    async with rig.engine() as publisher:
        await publisher.publish([an_event(n) for n in range(5)])
        opened = await eventually("open", lambda: opened_for(rig, subscription, 30))
        await publisher.publish([an_event(n) for n in range(5, 40)])
        await eventually("the others", lambda: received_at(rig, "/other", 40))
        assert await attempted(rig, subscription, 5)
        for pause in (60, 120):
            rig.clock.advance(seconds=(opened.open_until - rig.clock()).total_seconds() + 0.5)
            rig.wake()
            opened = await eventually(
                "one probe",
                lambda pause=pause: opened_for(rig, subscription, pause),  # type: ignore[misc]
            )
        made = len(await rig.attempts(subscription))

    assert made == 7
    deliveries = await rig.deliveries(subscription)
    assert [row.state for row in deliveries] == ["pending"] * 40
    assert sum(row.attempts_made for row in deliveries) == 7
    assert await is_over(rig, other)


async def opened_for(rig: Rig, subscription_id: UUID, seconds: float) -> Any:
    endpoint = await rig.endpoint(subscription_id)
    assert endpoint.probe_seconds == seconds
    return endpoint


async def test_an_answer_closes_the_breaker_and_everything_that_waited_is_delivered(
    rig: Rig,
) -> None:
    subscription = await rig.subscribe("", url=REFUSING)
    rig.clock.stand_still()

    async with rig.engine() as publisher:
        await publisher.publish([an_event(n) for n in range(5)])
        await eventually("open", lambda: opened_for(rig, subscription, 30))
        await publisher.publish([an_event(n) for n in range(5, 40)])
        await rig.change(
            "UPDATE subscription SET callback_url = :url WHERE id = :id",
            url=f"{rig.receiver.url}/back",
            id=subscription,
        )
        rig.later(seconds=40)
        await eventually("all", lambda: received_at(rig, "/back", 40))
        await eventually("the end", lambda: is_over(rig, subscription))

    endpoint = await rig.endpoint(subscription)
    assert (endpoint.open_until, endpoint.unreachable_in_a_row) == (None, 0)


async def nine_fail(rig: Rig, subscription_id: UUID, settings: DeliverySettings) -> None:
    """Nine events fail in a process that then ends: one that goes on may be about to look whether the endpoint has
    failed for days, and would count a tenth event, which is due and not attempted yet, as failed.
    """
    async with rig.engine(settings) as publisher:
        await publisher.publish([an_event(n) for n in range(9)])
        await eventually("nine failed", lambda: attempted(rig, subscription_id, 9))


async def test_the_subscription_of_an_endpoint_that_has_failed_for_days_becomes_unavailable(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(unavailability, "LOOK_SECONDS", 0.1)
    subscription = await rig.subscribe("/failing", event_type="*")
    await rig.subscribe("/other", event_type="webhook_subscription")
    rig.receiver.statuses["/failing"] = 500
    settings = DeliverySettings(retry_seconds=())

    await nine_fail(rig, subscription, settings)
    rig.clock.advance(days=6)
    async with rig.engine(settings) as publisher:
        await publisher.publish([an_event(10)])
        await eventually("unavailable", lambda: has_status(rig, subscription, "unavailable"))
        [news] = await eventually("the event", lambda: received_at(rig, "/other", 1))

    assert {row.concluded for row in await rig.attempts(subscription)} == {"failed"}
    [told] = await rig.query("SELECT * FROM event WHERE type = 'webhook_subscription.unavailable'")
    assert (told.resource_id, told.sequence) == (str(subscription), 1)
    assert news.event_id == f"evt_{told.id}"
    assert [row.state for row in await rig.deliveries(subscription)] == ["held"]


async def test_a_failing_endpoint_that_gets_no_further_event_becomes_unavailable(rig: Rig) -> None:
    subscription = await rig.subscribe("/failing")
    await rig.subscribe("/other", event_type="webhook_subscription")
    rig.receiver.statuses["/failing"] = 500
    settings = DeliverySettings(retry_seconds=())
    async with rig.engine(settings) as publisher:
        await publisher.publish([an_event(n) for n in range(FAILED_EVENTS)])
        await eventually("all failed", lambda: attempted(rig, subscription, FAILED_EVENTS))

    rig.clock.advance(days=6)
    async with rig.engine(settings):
        await eventually("unavailable", lambda: has_status(rig, subscription, "unavailable"))
        await eventually("the event", lambda: received_at(rig, "/other", 1))

    assert len(await rig.attempts(subscription)) == FAILED_EVENTS


async def test_a_failing_endpoint_that_still_succeeds_now_and_then_stays_active(rig: Rig) -> None:
    subscription = await rig.subscribe("/a")
    rig.receiver.statuses["/a"] = 500
    settings = DeliverySettings(retry_seconds=())

    await nine_fail(rig, subscription, settings)
    rig.clock.advance(days=6)
    rig.receiver.statuses["/a"] = 200
    async with rig.engine(settings) as publisher:
        await publisher.publish([an_event(10)])
        await eventually("a success", lambda: attempted(rig, subscription, 10))
        rig.receiver.statuses["/a"] = 500
        await publisher.publish([an_event(11)])
        await eventually("a failure", lambda: attempted(rig, subscription, 11))

    assert await has_status(rig, subscription, "active")
    assert (await rig.endpoint(subscription)).failed_events == 1
