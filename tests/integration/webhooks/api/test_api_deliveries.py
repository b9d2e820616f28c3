"""Deliveries as they are listed, read, tested and sent once more."""

from __future__ import annotations

import asyncio
import uuid
from datetime import UTC, datetime, timedelta

import pytest

from libs.contracts import webhook_operations as table
from libs.contracts.errors import InvalidState, NotFound
from libs.contracts.operating import webhooks as operators
from services.webhook_dispatcher.adapters.poster import MAX_ANSWER_BYTES
from tests.integration.webhooks.api.desk import Desk

pytestmark = pytest.mark.asyncio(loop_scope="session")

DELIVERY = {
    *("delivery_id", "event_id", "event_type", "status", "attempts_made", "next_attempt_at"),
    "circuit_breaker",
    "created_at",
}


async def test_deliveries_are_listed_newest_first_by_page_and_by_status(desk: Desk) -> None:
    subscription_id = await desk.subscribe()
    events = [await desk.record() for _ in range(4)]
    ids = [await desk.delivery_of(event_id, subscription_id) for event_id in events]
    await desk.conclude(ids[0], "succeeded")
    await desk.conclude(ids[1], "failed")

    everything = await desk.deliveries(subscription_id)
    page = await desk.payload(
        table.LIST_DELIVERIES, desk.customer, subscription_id=subscription_id, page=2, limit=3
    )

    assert [found["delivery_id"] for found in everything] == ids[::-1]
    assert all(found.keys() == DELIVERY for found in everything)
    assert [found["status"] for found in everything] == [
        "pending",
        "pending",
        "failed",
        "succeeded",
    ]
    assert [found["event_id"] for found in everything] == events[::-1]
    assert [found["next_attempt_at"] is None for found in everything] == [False, False, True, True]
    assert [found["delivery_id"] for found in page["data"]] == ids[:1]
    assert page["pagination"] == {"limit": 3, "total": 4, "page": 2}
    for status, expected in {"succeeded": ids[:1], "failed": ids[1:2], "held": []}.items():
        found = await desk.deliveries(subscription_id, status=status)
        assert [delivery["delivery_id"] for delivery in found] == expected


async def test_a_delivery_has_its_attempts_of_every_day_in_their_order(desk: Desk) -> None:
    subscription_id = await desk.subscribe()
    event_id = await desk.record()
    delivery_id = await desk.delivery_of(event_id, subscription_id)
    now = datetime.now(UTC)
    await desk.database.execute(
        "UPDATE delivery SET attempts_made = 1, created_at = $2 WHERE id = $1",
        *(uuid.UUID(delivery_id), now - timedelta(days=2)),
    )
    await desk.conclude(delivery_id, "succeeded", at=now)
    for statement in (  # the dispatcher may have tried it before
        "DELETE FROM attempt WHERE delivery_id = $1 AND concluded IS NULL",
        "UPDATE attempt SET number = 2 WHERE delivery_id = $1",
    ):
        await desk.database.execute(statement, uuid.UUID(delivery_id))
    await desk.database.execute(
        "INSERT INTO attempt SELECT day - 2, delivery_id, 1, subscription_id, event_day, event_id, event_type,"
        " delivery_created_at, NULL, attempted_at - interval '2 days', 15000, NULL, 'It took too long.', NULL"
        " FROM attempt WHERE delivery_id = $1 AND number = 2",
        uuid.UUID(delivery_id),
    )

    found = await desk.ask(
        table.GET_DELIVERY,
        desk.customer,
        subscription_id=subscription_id,
        delivery_id=delivery_id,
    )

    first, second = found.pop("attempts")
    assert found.keys() == DELIVERY
    assert (found["status"], found["attempts_made"]) == ("succeeded", 2)
    assert (first["response_status"], first["error"]) == (None, "It took too long.")
    assert (second["response_status"], second["response_body"]) == (200, "what it said")
    assert first["attempted_at"] < second["attempted_at"]


async def test_of_a_delivery_with_many_attempts_the_newest_are_shown_and_64_kib_of_their_answers(
    desk: Desk,
) -> None:
    subscription_id = await desk.subscribe()
    delivery_id = await desk.delivery_of(await desk.record(), subscription_id)
    await desk.hold(subscription_id)
    asked = {"subscription_id": subscription_id, "delivery_id": delivery_id}
    # An attempt of the dispatcher itself may have the number 1.
    await desk.database.execute(
        "INSERT INTO attempt (day, delivery_id, number, subscription_id, event_day, event_id, event_type,"
        " delivery_created_at, attempted_at, duration_ms, response_status, response_body)"
        " SELECT current_date - (number < 45)::int, id, number, subscription_id, event_day, event_id, event_type,"
        " created_at, clock_timestamp(), number, 500, CASE WHEN number <> 49 THEN repeat('é', $2 / 2) END"
        " FROM delivery, generate_series(2, 50) number WHERE id = $1",
        *(uuid.UUID(delivery_id), MAX_ANSWER_BYTES),
    )

    found = await desk.ask(table.GET_DELIVERY, desk.customer, **asked)
    seen_by_operators = await desk.operate(operators.GET_DELIVERY, **asked)

    for shown in (found, seen_by_operators):
        assert [one["duration_ms"] for one in shown["attempts"]] == [*range(11, 51)]
        assert {one["response_status"] for one in shown["attempts"]} == {500}
        bodies = {one["duration_ms"]: one["response_body"] for one in shown["attempts"]}
        assert {number for number, body in bodies.items() if body} == {46, 47, 48, 50}
        assert bodies[50] == "é" * (MAX_ANSWER_BYTES // 2)


async def test_a_delivery_of_another_subscription_is_not_there(desk: Desk) -> None:
    first, second = await desk.subscribe(), await desk.subscribe()
    delivery_id = await desk.delivery_of(await desk.record(), first)

    for pair in (table.GET_DELIVERY, table.RESEND_DELIVERY):
        for asked in (delivery_id, str(uuid.uuid4()), "nonsense"):
            with pytest.raises(NotFound):
                await desk.ask(pair, desk.customer, subscription_id=second, delivery_id=asked)


async def test_a_test_event_goes_to_that_subscription_only_whatever_it_asks_for(desk: Desk) -> None:
    subscription_id = await desk.subscribe(event_types="wire.completed")
    everything, of_partner = await desk.subscribe(), await desk.subscribe(desk.partner)

    tested = [
        await desk.ask(table.TEST_SUBSCRIPTION, desk.customer, subscription_id=subscription_id)
        for _ in range(2)
    ]

    listed = await desk.deliveries(subscription_id)
    assert [found["delivery_id"] for found in listed] == [t["delivery_id"] for t in tested[::-1]]
    assert {delivery["event_type"] for delivery in tested} == {"webhook_subscription.test"}
    assert await desk.deliveries(everything) == []
    assert await desk.deliveries(of_partner, who=desk.partner) == []
    events = [
        await desk.ask(table.GET_EVENT, desk.customer, event_id=delivery["event_id"])
        for delivery in tested
    ]
    assert [event["sequence"] for event in events] == [1, 2]
    assert events[0]["data"]["object"] == "webhook_subscription"
    assert events[0]["data"]["subscription_id"] == subscription_id
    assert events[0]["data"]["customer_id"] == desk.customer.customer_id
    assert not [name for name in events[0]["data"] if "secret" in name]


async def test_what_a_partner_tests_is_an_event_of_no_customer(desk: Desk) -> None:
    subscription_id = await desk.subscribe(desk.partner)

    tested = await desk.ask(table.TEST_SUBSCRIPTION, desk.partner, subscription_id=subscription_id)

    event = await desk.ask(table.GET_EVENT, desk.partner, event_id=tested["event_id"])
    assert event["data"]["customer_id"] is None
    with pytest.raises(NotFound):
        await desk.ask(table.GET_EVENT, desk.customer, event_id=tested["event_id"])


@pytest.mark.parametrize("concluded", ["", "succeeded", "failed"])
async def test_what_is_sent_again_twice_is_two_deliveries_of_the_same_event(
    desk: Desk, concluded: str
) -> None:
    subscription_id = await desk.subscribe()
    event_id = await desk.record()
    delivery_id = await desk.delivery_of(event_id, subscription_id)
    if concluded:
        await desk.conclude(delivery_id, concluded)

    again = [
        await desk.ask(
            table.RESEND_DELIVERY,
            desk.customer,
            subscription_id=subscription_id,
            delivery_id=delivery_id,
        )
        for _ in range(2)
    ]

    assert {delivery["event_id"] for delivery in again} == {event_id}
    assert {delivery["status"] for delivery in again} == {"pending"}
    listed = await desk.deliveries(subscription_id)
    assert [found["delivery_id"] for found in listed] == [
        *(delivery["delivery_id"] for delivery in again[::-1]),
        delivery_id,
    ]


@pytest.mark.parametrize("status", ["disabled", "unavailable"])
async def test_nothing_is_sent_to_a_subscription_that_is_not_active(
    desk: Desk, status: str
) -> None:
    subscription_id = await desk.subscribe()
    delivery_id = await desk.delivery_of(await desk.record(), subscription_id)
    await desk.set_status(subscription_id, status)
    asked = {"subscription_id": subscription_id}

    with pytest.raises(InvalidState):
        await desk.ask(table.TEST_SUBSCRIPTION, desk.customer, **asked)
    with pytest.raises(InvalidState):
        await desk.ask(table.RESEND_DELIVERY, desk.customer, **asked, delivery_id=delivery_id)
    with pytest.raises(InvalidState):
        await desk.ask(table.RECOVER_SUBSCRIPTION, desk.customer, **asked, since=datetime.now(UTC))

    assert len(await desk.deliveries(subscription_id)) == 1


async def test_a_delivery_whose_event_is_kept_no_longer_cannot_be_sent_again(desk: Desk) -> None:
    subscription_id = await desk.subscribe()
    event_id = await desk.record()
    delivery_id = await desk.delivery_of(event_id, subscription_id)
    await desk.database.execute(
        "DELETE FROM event WHERE id = $1", uuid.UUID(event_id.removeprefix("evt_"))
    )

    with pytest.raises(NotFound):
        await desk.ask(
            table.RESEND_DELIVERY,
            desk.customer,
            subscription_id=subscription_id,
            delivery_id=delivery_id,
        )


async def test_an_event_beyond_the_retention_cannot_be_sent_again_while_another_delivery_keeps_it(
    desk: Desk,
) -> None:
    subscription_id, keeping = await desk.subscribe(), await desk.subscribe()
    event_id = await desk.record()
    delivery_id = await desk.delivery_of(event_id, subscription_id)
    await desk.conclude(delivery_id)
    await desk.move_beyond_retention(event_id)
    asked = {"subscription_id": subscription_id, "delivery_id": delivery_id}

    with pytest.raises(NotFound) as refusal:
        await desk.ask(table.RESEND_DELIVERY, desk.customer, **asked)
    with pytest.raises(NotFound):
        await desk.operate(operators.RESEND, **asked, reason="The endpoint was mended.")

    assert refusal.value.detail == "The event is kept no longer."
    [kept] = await desk.deliveries(keeping)
    assert (kept["event_id"], kept["status"]) == (event_id, "pending")
    await desk.ask(table.DELETE_SUBSCRIPTION, desk.customer, subscription_id=keeping)


async def test_resends_at_once_are_as_many_deliveries(desk: Desk) -> None:
    subscription_id = await desk.subscribe()
    delivery_id = await desk.delivery_of(await desk.record(), subscription_id)

    await asyncio.gather(
        *(
            desk.ask(
                table.RESEND_DELIVERY,
                desk.customer,
                subscription_id=subscription_id,
                delivery_id=delivery_id,
            )
            for _ in range(10)
        )
    )

    assert len(await desk.deliveries(subscription_id)) == 11
