"""What the dispatcher has recorded of a request, as operators see it."""

from __future__ import annotations

import uuid
from typing import Any

import pytest

from libs.contracts import webhook_operations as table
from libs.contracts.operating import requests, search
from libs.contracts.principal import Family
from tests.integration.webhooks.api.desk import Desk

pytestmark = pytest.mark.asyncio(loop_scope="session")

ROW = requests.STEPS_OF["webhook_dispatcher"]


async def raised_by(desk: Desk, event_id: str, request_id: str) -> None:
    await desk.database.execute(
        "UPDATE event SET request_id = $1 WHERE id = $2",
        request_id,
        uuid.UUID(event_id.removeprefix("evt_")),
    )


def of_kind(found: Any, kind: str) -> list[Any]:
    return [step for step in found["steps"] if step["kind"] == kind]


async def test_the_events_of_a_request_are_shown_with_deliveries_and_attempts(desk: Desk) -> None:
    request_id = f"req-{uuid.uuid4()}"
    waiting, over = [await desk.subscribe() for _ in range(2)]
    event_id, other = await desk.record(), await desk.record()
    await raised_by(desk, event_id, request_id)
    await raised_by(desk, other, f"{request_id}x")
    delivery_id = await desk.delivery_of(event_id, over)
    await desk.conclude(delivery_id)

    found = await desk.operate(ROW, request_id=request_id)

    (event,) = of_kind(found, "event")
    assert (event["event_id"], event["tenant"]) == (event_id, desk.tenant)
    assert (event["what"], event["request_id"]) == ("transaction.created", None)
    (delivery,) = of_kind(found, "delivery")
    assert (delivery["subscription_id"], delivery["state"]) == (waiting, "pending")
    assert delivery["next_attempt_at"]
    attempts = [step for step in of_kind(found, "attempt") if step["subscription_id"] == over]
    last = attempts[-1]
    assert (last["state"], last["response_status"], last["error"]) == (
        "failed",
        500,
        "It answered 500.",
    )
    assert (last["delivery_id"], last["event_id"]) == (delivery_id, event_id)
    assert not found["is_cut"]
    assert "what it said" not in str(found)


async def test_the_events_of_what_a_request_made_are_shown_with_the_request_that_raised_them(
    desk: Desk,
) -> None:
    request_id, later = f"req-{uuid.uuid4()}", f"req-{uuid.uuid4()}"
    first, second = await desk.record(), await desk.record()
    await raised_by(desk, first, request_id)
    await raised_by(desk, second, later)
    ids = [uuid.UUID(each.removeprefix("evt_")) for each in (first, second)]
    rows = await desk.rows("SELECT resource_id FROM event WHERE id = ANY($1::uuid[])", ids)

    found = await desk.operate(
        ROW, request_id=request_id, resource_ids=[row["resource_id"] for row in rows]
    )

    assert [(step["event_id"], step["request_id"]) for step in of_kind(found, "event")] == [
        (first, None),
        (second, later),
    ]


async def test_a_command_is_found_by_its_request_with_the_subscription_that_it_made(
    desk: Desk,
) -> None:
    subscription_id = await desk.subscribe()
    (row,) = await desk.rows(
        "SELECT request_id, command_id FROM inbox WHERE operation = $1 AND finished_at IS NOT NULL"
        " ORDER BY sequence DESC LIMIT 1",
        table.CREATE_SUBSCRIPTION.of(Family.CUSTOMER).name,
    )

    found = await desk.operate(ROW, request_id=row["request_id"])
    request_id, command_id = str(row["request_id"]), str(row["command_id"])
    searched = [
        (await desk.operate(search.FIND_ID_OF["webhook_dispatcher"], q=wanted))["found"]
        for wanted in (request_id, command_id)
    ]

    (subscription,) = of_kind(found, "subscription")
    assert (subscription["subscription_id"], subscription["state"]) == (subscription_id, "active")
    (command,) = of_kind(found, "command")
    assert (command["command_id"], command["tenant"]) == (command_id, desk.tenant)
    assert "secret" not in str(found)
    for [one] in searched:
        assert (one["kind"], one["id"], one["request_id"]) == ("command", command_id, request_id)
