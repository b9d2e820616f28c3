"""Subscriptions: made, listed, changed, deleted; each by whoever it belongs to and nobody else."""

from __future__ import annotations

import asyncio
import json
import uuid

import pytest

from libs.contracts import webhook_operations as table
from libs.contracts.errors import Invalid, InvalidState, NotFound
from libs.contracts.webhook_operations import FamilyPair
from tests.integration.webhooks.api.desk import NOWHERE, Desk

pytestmark = pytest.mark.asyncio(loop_scope="session")

OTHER_URL = "http://localhost:9/other"


async def test_a_subscription_is_returned_without_its_secret_and_found_again(desk: Desk) -> None:
    made = await desk.ask(
        table.CREATE_SUBSCRIPTION, desk.customer, event_types="transaction", callback_url=NOWHERE
    )

    assert set(made) == {
        *("subscription_id", "event_type", "callback_url", "description", "status"),
        *("created_at", "updated_at"),
    }
    assert made["event_type"] == "transaction"
    assert made["callback_url"] == NOWHERE
    assert made["description"] == ""
    assert made["status"] == "active"
    assert made["updated_at"] == made["created_at"]
    asked = {"subscription_id": made["subscription_id"]}
    assert await desk.ask(table.GET_SUBSCRIPTION, desk.customer, **asked) == made
    assert await desk.ask(table.LIST_SUBSCRIPTIONS, desk.customer) == [made]


async def test_subscriptions_are_listed_newest_first(desk: Desk) -> None:
    made = [await desk.subscribe(desk.partner) for _ in range(3)]

    listed = await desk.ask(table.LIST_SUBSCRIPTIONS, desk.partner)

    assert [found["subscription_id"] for found in listed] == made[::-1]


@pytest.mark.parametrize("url", ["https://10.0.0.1/hook", "http://example.com/", "https://[::1]/"])
async def test_a_url_where_deliveries_may_not_go_is_refused_at_creation_and_on_change(
    desk: Desk, url: str
) -> None:
    subscription_id = await desk.subscribe()

    with pytest.raises(Invalid) as at_creation:
        await desk.ask(table.CREATE_SUBSCRIPTION, desk.customer, event_types="*", callback_url=url)
    with pytest.raises(Invalid) as on_change:
        await desk.ask(
            table.UPDATE_SUBSCRIPTION,
            desk.customer,
            subscription_id=subscription_id,
            callback_url=url,
        )

    for refusal in (at_creation.value, on_change.value):
        assert [error["loc"] for error in refusal.errors] == [["body", "callback_url"]]
        assert isinstance(refusal.errors[0]["msg"], str)
    assert len(await desk.ask(table.LIST_SUBSCRIPTIONS, desk.customer)) == 1


async def test_of_sixty_creations_at_once_fifty_succeed_for_each_subscriber(desk: Desk) -> None:
    async def create() -> str:
        try:
            return await desk.subscribe()
        except InvalidState:
            return ""

    made = await asyncio.gather(*(create() for _ in range(60)))

    assert sum(map(bool, made)) == 50
    assert len(await desk.ask(table.LIST_SUBSCRIPTIONS, desk.customer)) == 50
    assert await desk.subscribe(desk.partner)
    assert await desk.subscribe(desk.other_customer)
    await desk.ask(
        table.DELETE_SUBSCRIPTION, desk.customer, subscription_id=next(filter(None, made))
    )
    assert await desk.subscribe()


BY_ID: list[tuple[FamilyPair, dict[str, str]]] = [
    (table.GET_SUBSCRIPTION, {}),
    (table.UPDATE_SUBSCRIPTION, {"description": "mine"}),
    (table.DELETE_SUBSCRIPTION, {}),
    (table.GET_SECRET, {}),
    (table.ROTATE_SECRET, {}),
    (table.TEST_SUBSCRIPTION, {}),
    (table.LIST_DELIVERIES, {}),
    (table.GET_DELIVERY, {"delivery_id": str(uuid.uuid4())}),
    (table.RESEND_DELIVERY, {"delivery_id": str(uuid.uuid4())}),
    (table.RECOVER_SUBSCRIPTION, {"since": "2999-01-01T00:00:00Z"}),
]


@pytest.mark.parametrize(("pair", "more"), BY_ID, ids=[pair.customer.name for pair, _ in BY_ID])
async def test_what_is_another_s_is_as_if_it_were_not_there(
    desk: Desk, pair: FamilyPair, more: dict[str, str]
) -> None:
    of_customer, of_partner = await desk.subscribe(), await desk.subscribe(desk.partner)
    attempts = [
        (desk.other_customer, of_customer),
        (desk.partner, of_customer),
        (desk.stranger, of_customer),
        (desk.customer, of_partner),
        (desk.stranger, of_partner),
        (desk.customer, str(uuid.uuid4())),
        (desk.customer, "no-id-of-ours"),
    ]

    for who, subscription_id in attempts:
        with pytest.raises(NotFound):
            await desk.ask(pair, who, subscription_id=subscription_id, **more)

    for who in (desk.customer, desk.partner):
        (left,) = await desk.ask(table.LIST_SUBSCRIPTIONS, who)
        assert (left["description"], left["status"]) == ("", "active")


async def test_what_is_sent_is_changed_and_nothing_else(desk: Desk) -> None:
    subscription_id = await desk.subscribe()
    asked = {"subscription_id": subscription_id}
    before = await desk.ask(table.GET_SUBSCRIPTION, desk.customer, **asked)

    untouched = await desk.ask(table.UPDATE_SUBSCRIPTION, desk.customer, **asked)
    changed = await desk.ask(
        table.UPDATE_SUBSCRIPTION,
        desk.customer,
        **asked,
        event_types="wire.completed",
        callback_url=OTHER_URL,
        description=" Wires ",
    )
    cleared = await desk.ask(table.UPDATE_SUBSCRIPTION, desk.customer, **asked, description=None)

    assert untouched == before
    assert changed["updated_at"] > before["updated_at"]
    assert changed == before | {
        "event_type": "wire.completed",
        "callback_url": OTHER_URL,
        "description": "Wires",
        "updated_at": changed["updated_at"],
    }
    assert cleared["description"] == ""
    assert await desk.ask(table.GET_SUBSCRIPTION, desk.customer, **asked) == cleared


async def test_what_a_disabled_subscription_waits_for_is_held_until_it_is_active_again(
    desk: Desk,
) -> None:
    subscription_id = await desk.subscribe()
    before = await desk.record()

    await _set(desk, subscription_id, "disabled")
    meanwhile = await desk.record()
    held = await desk.deliveries(subscription_id, status="held")
    assert await desk.deliveries(subscription_id, status="pending") == []
    await _set(desk, subscription_id, "active")
    pending = await desk.deliveries(subscription_id, status="pending")

    assert {d["event_id"] for d in held} == {before, meanwhile}
    assert {d["next_attempt_at"] for d in held} == {None}
    assert {d["event_id"] for d in pending} == {before, meanwhile}
    assert all(d["next_attempt_at"] for d in pending)


async def test_an_unavailable_subscription_becomes_active_and_its_endpoint_is_as_new(
    desk: Desk,
) -> None:
    subscription_id = await desk.subscribe()
    await desk.set_status(subscription_id, "unavailable")
    held = await desk.record()
    await desk.database.execute(
        "UPDATE endpoint SET failed_events = 12, open_until = now() + interval '1 hour'"
        " WHERE subscription_id = $1",
        uuid.UUID(subscription_id),
    )

    with pytest.raises(InvalidState):
        await _set(desk, subscription_id, "disabled")
    await _set(desk, subscription_id, "active")

    (endpoint,) = await desk.rows(
        "SELECT failed_events, open_until FROM endpoint WHERE subscription_id = $1",
        uuid.UUID(subscription_id),
    )
    assert endpoint["failed_events"] == 0
    (still,) = await desk.deliveries(subscription_id, status="held")
    assert still["event_id"] == held


async def test_a_deleted_subscription_is_gone_with_what_it_waited_for(desk: Desk) -> None:
    subscription_id = await desk.subscribe()
    await desk.record()

    await desk.ask(table.DELETE_SUBSCRIPTION, desk.customer, subscription_id=subscription_id)
    await desk.record()

    assert await desk.ask(table.LIST_SUBSCRIPTIONS, desk.customer) == []
    with pytest.raises(NotFound):
        await desk.ask(table.DELETE_SUBSCRIPTION, desk.customer, subscription_id=subscription_id)
    (row,) = await desk.rows(
        "SELECT secret, callback_url, description,"
        " (SELECT count(*) FROM delivery WHERE subscription_id = s.id) AS left"
        " FROM subscription s WHERE id = $1",
        uuid.UUID(subscription_id),
    )
    assert (row["secret"], row["callback_url"], row["description"], row["left"]) == (b"", "", "", 0)


async def test_the_outcome_of_a_deletion_has_no_callback_url(desk: Desk) -> None:
    subscription_id, command_id = await desk.subscribe(), str(uuid.uuid4())
    deletion = {"command_id": command_id, "subscription_id": subscription_id}

    first = await desk.payload(table.DELETE_SUBSCRIPTION, desk.customer, **deletion)
    again = await desk.payload(table.DELETE_SUBSCRIPTION, desk.customer, **deletion)

    assert first == again
    (row,) = await desk.rows(
        "SELECT data FROM outcome WHERE command_id = $1", uuid.UUID(command_id)
    )
    assert json.loads(row["data"]) == {"subscription_id": subscription_id}


async def test_more_than_one_batch_is_held_and_released_whole(desk: Desk) -> None:
    subscription_id = await desk.subscribe()
    event_id = await desk.record()
    await desk.database.execute(
        "INSERT INTO delivery SELECT gen_random_uuid(), subscription_id, tenant, event_day, event_id, event_type,"
        " state, 0, due_at + interval '1 hour', NULL, NULL, created_at FROM delivery, generate_series(1, 11000)"
        " WHERE subscription_id = $1 AND event_id = $2",
        *(uuid.UUID(subscription_id), uuid.UUID(event_id.removeprefix("evt_"))),
    )

    await _set(desk, subscription_id, "disabled")
    held = await _states(desk, subscription_id)
    await _set(desk, subscription_id, "active")
    released = await _states(desk, subscription_id)

    assert held == {"held": 11001}
    assert released == {"pending": 11001}
    await desk.ask(table.DELETE_SUBSCRIPTION, desk.customer, subscription_id=subscription_id)
    assert await _states(desk, subscription_id) == {}


async def _set(desk: Desk, subscription_id: str, status: str) -> None:
    changed = await desk.ask(
        table.UPDATE_SUBSCRIPTION, desk.customer, subscription_id=subscription_id, status=status
    )
    assert changed["status"] == status


async def _states(desk: Desk, subscription_id: str) -> dict[str, int]:
    counted = await desk.rows(
        "SELECT state, count(*) AS n FROM delivery WHERE subscription_id = $1 GROUP BY state",
        uuid.UUID(subscription_id),
    )
    return {row["state"]: row["n"] for row in counted}
