"""Attempts at a delivery: what the answer decides, when the next one comes, how each is signed."""

from __future__ import annotations

import time
from collections.abc import Mapping
from contextlib import AsyncExitStack
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from functools import partial
from typing import Any

import pytest
from standardwebhooks import WebhookVerificationError

from tests.e2e.webhooks.conftest import Cast
from tests.support.dispatcher_tables import WAITS, DispatcherTables
from tests.support.event_bus import EventBus, made_up_events
from tests.support.receivers import Answer, receiver, replies, resets
from tests.support.subscribers import CUSTOMER, Subscriber, by_target, subscribed
from tests.support.waiting import eventually

HOUR = 3600.0
SCHEDULE = (5.0, 300.0, 1800.0, 2 * HOUR, 5 * HOUR, 10 * HOUR, 14 * HOUR, 20 * HOUR, 24 * HOUR)
FIRST_PAUSE = (0.8 * 5, 1.2 * 5)
"""Interface §8."""
ROOM_SECONDS = 0.25
"""The dispatcher sets its clock by the database's every 5 s, to within half of what that statement takes."""
SUCCESSES = {f"/{status}": replies(status) for status in (200, 201, 204, 299)}


def pause_after_last(delivery: Any) -> float:
    """Seconds from the end of the last attempt until the next, without what `retries_wait` adds."""
    last = delivery["attempts"][-1]
    ended = datetime.fromisoformat(last["attempted_at"]) + timedelta(
        milliseconds=last["duration_ms"]
    )
    return (datetime.fromisoformat(delivery["next_attempt_at"]) - WAITS - ended).total_seconds()


async def attempted(subscriber: Subscriber, event_id: str, times: int) -> Any:
    async def made() -> Any:
        found = await subscriber.delivery(event_id)
        assert found["attempts_made"] == times, found["attempts_made"]
        return found

    return await eventually(f"{times} attempts at {subscriber.target}", made)


def failures(url: str) -> Mapping[str, tuple[Answer, tuple[float, float]]]:
    """Answers that are no success, each with the pause that it leads to."""
    in_two_hours = format_datetime(datetime.now(UTC) + timedelta(hours=2), usegmt=True)
    asks = "Retry-After"
    return {
        "/301": (replies(301, headers={"Location": f"{url}/elsewhere"}), FIRST_PAUSE),
        "/307": (replies(307, headers={"Location": f"{url}/elsewhere"}), FIRST_PAUSE),
        "/404": (replies(404), FIRST_PAUSE),
        "/500": (replies(500), FIRST_PAUSE),
        "/reset": (resets, FIRST_PAUSE),
        "/garbage": (replies(503, headers={asks: "after lunch"}), FIRST_PAUSE),
        "/500-later": (replies(500, headers={asks: "3600"}), FIRST_PAUSE),
        "/soon": (replies(503, headers={asks: "1"}), FIRST_PAUSE),
        "/hour": (replies(429, headers={asks: "3600"}), (HOUR, HOUR)),
        "/date": (replies(503, headers={asks: in_two_hours}), (2 * HOUR - 60, 2 * HOUR)),
        "/too-long": (replies(503, headers={asks: "9999999"}), (10 * HOUR, 10 * HOUR)),
    }


@pytest.mark.usefixtures("retries_wait")
async def test_the_answer_decides_for_its_subscription_alone(
    bus: EventBus, cast: Cast, tables: DispatcherTables
) -> None:
    (event,) = made_up_events(1, cast.partner.key.tenant, cast.customer_id)
    async with receiver() as endpoint, AsyncExitStack() as opened:
        failing = failures(endpoint.url(""))
        endpoint.answer = by_target(SUCCESSES | {path: how for path, (how, _) in failing.items()})
        subscribers = {
            path: await opened.enter_async_context(
                subscribed(cast.partner, endpoint, "person", target=path)
            )
            for path in (*SUCCESSES, *failing)
        }

        await bus.publish([event])
        first = {path: await attempted(s, event.event_id, 1) for path, s in subscribers.items()}
        endpoint.answer = replies(200)
        assert await tables.retries_are_due(subscribers["/500"].subscription_id) == 1
        second = await attempted(subscribers["/500"], event.event_id, 2)

        for path in SUCCESSES:
            assert (first[path]["status"], first[path]["next_attempt_at"]) == ("succeeded", None)
        for path, (_, (least, most)) in failing.items():
            assert first[path]["status"] == "pending"
            pause = pause_after_last(first[path])
            assert least - ROOM_SECONDS <= pause <= most + ROOM_SECONDS, f"{path}: {pause}"
        (reset,) = first["/reset"]["attempts"]
        assert (reset["response_status"], bool(reset["error"])) == (None, True)
        assert [a["response_status"] for a in second["attempts"]] == [500, 200]
        assert second["status"] == "succeeded"
        # One event, as many deliveries as subscriptions; the second attempt disturbed nobody else, nor did a redirect.
        came = {path: len(s.requests) for path, s in subscribers.items()}
        assert came == dict.fromkeys(subscribers, 1) | {"/500": 2}
        assert len(endpoint.requests) == len(subscribers) + 1


@pytest.mark.usefixtures("retries_wait")
async def test_what_fails_is_tried_ten_times_on_schedule_each_pause_varied(
    bus: EventBus, cast: Cast, tables: DispatcherTables
) -> None:
    events = made_up_events(3, cast.partner.key.tenant, cast.customer_id)
    factors: list[float] = []
    async with (
        receiver(replies(500, b"no")) as endpoint,
        subscribed(cast.partner, endpoint, "person") as subscriber,
    ):
        await bus.publish(events)
        for made, step in enumerate(SCHEDULE, start=1):
            for event in events:
                delivery = await attempted(subscriber, event.event_id, made)
                factors.append(pause_after_last(delivery) / step)
            assert await tables.retries_are_due(subscriber.subscription_id) == len(events)
        failed = [await attempted(subscriber, event.event_id, 10) for event in events]

        assert all(0.8 - 0.001 <= factor <= 1.2 + 0.001 for factor in factors), factors
        assert max(factors) - min(factors) > 0.1
        for delivery in failed:
            assert (delivery["status"], delivery["next_attempt_at"]) == ("failed", None)
            answers = {(a["response_status"], a["response_body"]) for a in delivery["attempts"]}
            assert answers == {(500, "no")}
        assert len(subscriber.requests) == 10 * len(events)


@pytest.mark.usefixtures("retries_wait")
async def test_attempts_share_id_and_bytes_and_a_rotated_secret_signs_until_it_expires(
    cast: Cast, tables: DispatcherTables
) -> None:
    async with (
        receiver(replies(503)) as endpoint,
        subscribed(cast.customer, endpoint, prefix=CUSTOMER) as subscriber,
    ):
        old, event_id = subscriber.secret, (await subscriber.do("test"))["event_id"]
        await attempted(subscriber, event_id, 1)
        rotated = await subscriber.do("secret/rotate")
        await eventually("another second", partial(is_later_than, subscriber))
        await tables.retries_are_due(subscriber.subscription_id)
        await attempted(subscriber, event_id, 2)
        await tables.previous_secret_expires(subscriber.subscription_id)
        await eventually("another second", partial(is_later_than, subscriber))
        endpoint.answer = replies(200)
        await tables.retries_are_due(subscriber.subscription_id)
        (delivery,) = await subscriber.is_over(1)
        requests, new = subscriber.requests, rotated["secret"]

        assert (delivery["status"], delivery["attempts_made"]) == ("succeeded", 3)
        assert {request.headers["webhook-id"] for request in requests} == {event_id}
        assert len({request.body for request in requests}) == 1
        assert len({request.headers["webhook-timestamp"] for request in requests}) == 3
        signatures = [request.headers["webhook-signature"].split(" ") for request in requests]
        assert [len(each) for each in signatures] == [1, 2, 1]
        assert len({one for each in signatures for one in each}) == 4
        first, second, third = requests
        for request, secret in ((first, old), (second, old), (second, new), (third, new)):
            assert subscriber.verified(request, secret)["type"] == "webhook_subscription.test"
        for request, secret in ((first, new), (third, old)):
            with pytest.raises(WebhookVerificationError):
                subscriber.verified(request, secret)
        assert rotated["previous_secret_expires_at"] is not None
        shown = (await cast.customer.get(f"{subscriber.one}/secret")).data
        assert shown == {"secret": new, "previous_secret_expires_at": None}


async def is_later_than(subscriber: Subscriber) -> bool:
    """Timestamps are whole seconds: those of the last attempt are over."""
    return time.time() >= int(subscriber.requests[-1].headers["webhook-timestamp"]) + 1


async def test_410_makes_unavailable_at_once_and_nothing_that_happens_meanwhile_is_lost(
    bus: EventBus, cast: Cast
) -> None:
    since = datetime.now(UTC).isoformat()
    tenant = cast.partner.key.tenant
    refused, meanwhile = made_up_events(2, tenant, cast.customer_id)
    async with (
        receiver(by_target({"/gone": replies(410)})) as endpoint,
        subscribed(cast.customer, endpoint, "person", prefix=CUSTOMER, target="/gone") as gone,
        subscribed(cast.customer, endpoint, prefix=CUSTOMER, target="/other") as other,
        subscribed(
            cast.customer, endpoint, "webhook_subscription", prefix=CUSTOMER, target="/told"
        ) as telling,
        subscribed(cast.partner, endpoint, target="/partner") as partners,
        subscribed(cast.stranger, endpoint, target="/stranger") as strangers,
    ):
        await bus.publish([refused])
        (told,) = await telling.heard_types("webhook_subscription.unavailable")
        await bus.publish([meanwhile])
        heard = await other.heard_types(
            *("person.updated", "webhook_subscription.unavailable", "person.updated")
        )
        held = await gone.deliveries(status="held")
        before = list(gone.ids)
        endpoint.answer = replies(200)
        made_active = await gone.change(status="active")
        recovered = await gone.do("recover", {"since": since})
        over = await gone.is_over(2)

        assert told in heard
        assert told["data"]["subscription_id"] == gone.subscription_id
        assert told["data"]["status"] == "unavailable"
        assert before == [refused.event_id]
        assert {d["event_id"] for d in held} == {refused.event_id, meanwhile.event_id}
        assert made_active["status"] == "active"
        assert recovered == {"scheduled": 2}
        assert {(d["event_id"], d["status"]) for d in over} == {
            (refused.event_id, "succeeded"),
            (meanwhile.event_id, "succeeded"),
        }
        assert sorted(gone.ids[1:]) == sorted([refused.event_id, meanwhile.event_id])
        assert strangers.requests == []
        await partners.heard_types("person.updated", "person.updated")
