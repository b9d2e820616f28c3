"""What operators read of webhooks and events of all tenants, and do about them."""

from __future__ import annotations

import json
import time
import uuid
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from libs.contracts import webhook_operations as table
from libs.contracts.errors import Invalid, InvalidState, NotFound
from libs.contracts.operating import search
from libs.contracts.operating import webhooks as contract
from libs.contracts.operating.pages import Listed
from libs.contracts.operation import Operation
from services.webhook_dispatcher.handlers import recovery
from services.webhook_dispatcher.handlers.operating import OperatingWebhooks
from services.webhook_dispatcher.handlers.operating_recovery import OperatorRecoveries
from services.webhook_dispatcher.repository import operating
from tests.integration.webhooks.api.desk import NOWHERE, OPERATOR, Desk
from tests.support.pace import pace
from tests.support.waiting import eventually

pytestmark = pytest.mark.asyncio(loop_scope="session")

REASON = "The customer called"


async def pages(desk: Desk, row: Operation, **values: Any) -> list[Any]:
    """The rows of all pages."""
    found: list[Any] = []
    after = None
    while True:
        page = await desk.operate(row, **values, after=after)
        assert len(page["items"]) <= values.get("limit", 50)
        found += page["items"]
        after = page["next"]
        if after is None:
            return found


async def audited(desk: Desk, subscription_id: str) -> list[dict[str, Any]]:
    entries = [
        json.loads(row["entry"])
        for row in await desk.rows("SELECT entry FROM audit ORDER BY day, number")
    ]
    return [entry for entry in entries if entry.get("subscription_id") == subscription_id]


def ids(found: list[Any], name: str = "subscription_id") -> list[str]:
    return [one[name] for one in found]


async def test_subscriptions_of_every_state_are_listed_page_by_page(desk: Desk) -> None:
    made = [await desk.subscribe() for _ in range(6)]
    deleted = await desk.subscribe()
    await desk.ask(table.DELETE_SUBSCRIPTION, desk.customer, subscription_id=deleted)
    _, disabled, unavailable, breaking, slow, failing = made
    await desk.set_status(disabled, "disabled")
    await desk.set_status(unavailable, "unavailable")
    changes = {
        breaking: "open_until = clock_timestamp() + interval '1 hour'",
        slow: "is_slow = true",
    }
    for subscription_id, change in changes.items():
        await desk.database.execute(
            f"UPDATE endpoint SET {change} WHERE subscription_id = $1", uuid.UUID(subscription_id)
        )
    await desk.record()
    await desk.database.execute(
        "UPDATE delivery SET attempts_made = 1, due_at = due_at + interval '1 hour'"
        " WHERE subscription_id = $1 AND state = 'pending'",
        uuid.UUID(failing),
    )
    await desk.database.execute(
        "DELETE FROM delivery WHERE subscription_id = ANY($1::uuid[])",
        [uuid.UUID(each) for each in made if each != failing],
    )

    async def listed(**values: Any) -> list[str]:
        found = await pages(
            desk, contract.LIST_SUBSCRIPTIONS, tenant=desk.tenant, limit=2, **values
        )
        return ids(found)

    assert await listed() == made[::-1]
    assert await listed(order="oldest") == made
    assert await listed(state="active") == [failing, slow, breaking, made[0]]
    assert await listed(state="disabled") == [disabled]
    assert await listed(state="unavailable") == [unavailable]
    assert await listed(state="breaker_open") == [breaking]
    assert await listed(state="slow") == [slow]
    assert await listed(state="failing") == await listed(state="failing", order="oldest")
    assert await listed(state="failing") == [failing]
    everybody = ids(await pages(desk, contract.LIST_SUBSCRIPTIONS, limit=200))
    assert [each for each in everybody if each in made] == made[::-1]
    assert deleted not in everybody
    assert failing in ids(await pages(desk, contract.LIST_SUBSCRIPTIONS, state="failing"))


@pytest.mark.parametrize(
    ("state", "change"),
    [
        ("failing", "UPDATE delivery SET attempts_made = 1 WHERE subscription_id = $1"),
        ("slow", "UPDATE endpoint SET is_slow = true WHERE subscription_id = $1"),
        (
            "breaker_open",
            "UPDATE endpoint SET open_until = now() + interval '1 hour' WHERE subscription_id = $1",
        ),
    ],
)
async def test_a_page_of_subscriptions_ends_after_so_many_were_looked_at(
    desk: Desk, monkeypatch: pytest.MonkeyPatch, state: str, change: str
) -> None:
    monkeypatch.setattr(operating, "AT_ONCE", 1)
    monkeypatch.setattr(operating, "MOST_LOOKED_AT", 2)
    meant, *_ = [await desk.subscribe() for _ in range(5)]
    await desk.record()
    await desk.database.execute(
        "DELETE FROM delivery WHERE tenant = $1 AND subscription_id <> $2",
        *(desk.tenant, uuid.UUID(meant)),
    )
    await desk.database.execute(change, uuid.UUID(meant))
    lists = OperatingWebhooks(desk.recorder, timedelta(days=30), lambda: None)

    async def page(after: str | None) -> Listed[contract.OperatorSubscription]:
        asked = {"tenant": desk.tenant, "state": state, "after": after}
        command = contract.ListOperatorSubscriptions.model_validate(asked)
        found = (await lists.list_subscriptions(OPERATOR, command, 0)).data
        assert isinstance(found, Listed)
        return found

    first = await page(None)
    second = await page(first.next)
    third = await page(second.next)

    assert [len(each.items) for each in (first, second, third)] == [0, 0, 1]
    assert third.items[0].subscription_id == meant
    assert third.next is None


async def test_a_subscription_is_shown_with_its_health_and_circuit_breaker(desk: Desk) -> None:
    subscription_id = await desk.subscribe(desk.partner)
    fresh = await desk.operate(contract.GET_SUBSCRIPTION, subscription_id=subscription_id)
    await desk.database.execute(
        "UPDATE endpoint SET open_until = clock_timestamp() + interval '1 hour', probe_seconds = 60,"
        " unreachable_in_a_row = 6 WHERE subscription_id = $1",
        uuid.UUID(subscription_id),
    )

    shown = await desk.operate(contract.GET_SUBSCRIPTION, subscription_id=subscription_id)

    assert fresh["breaker"]["state"] == "closed"
    assert fresh["health"]["state"] == fresh["health_state"] == "healthy"
    assert (shown["tenant"], shown["customer_id"]) == (desk.tenant, None)
    assert shown["callback_url"] == NOWHERE
    assert shown["health"]["state"] == "breaker_open"
    assert shown["breaker"]["state"] == "open"
    assert (shown["breaker"]["open_seconds"], shown["breaker"]["unreachable_in_a_row"]) == (60, 6)
    assert "secret" not in {name for name in shown if not name.startswith("previous")}
    for unknown in (str(uuid.uuid4()), "nonsense"):
        with pytest.raises(NotFound):
            await desk.operate(contract.GET_SUBSCRIPTION, subscription_id=unknown)


async def test_deliveries_of_every_status_are_listed_page_by_page(desk: Desk) -> None:
    subscription_id = await desk.subscribe()
    made = [await desk.delivery_of(await desk.record(), subscription_id) for _ in range(5)]
    await desk.conclude(made[0], "succeeded")
    await desk.conclude(made[1], "failed")
    await desk.conclude(made[2], "failed")

    async def listed(**values: Any) -> list[str]:
        found = await pages(
            desk,
            contract.LIST_DELIVERIES,
            subscription_id=subscription_id,
            limit=2,
            **values,
        )
        return ids(found, "delivery_id")

    assert await listed() == made[::-1]
    assert await listed(order="oldest") == made
    assert await listed(status="failed") == [made[2], made[1]]
    assert await listed(status="succeeded") == made[:1]
    assert await listed(status="pending") == [made[4], made[3]]
    assert await listed(status="held") == []


async def test_a_delivery_is_shown_with_what_was_sent_and_answered(desk: Desk) -> None:
    subscription_id = await desk.subscribe()
    event_id = await desk.record()
    delivery_id = await desk.delivery_of(event_id, subscription_id)
    asked = {"subscription_id": subscription_id, "delivery_id": delivery_id}

    async def attempted() -> Any:
        shown = await desk.operate(contract.GET_DELIVERY, **asked)
        assert shown["attempts"]
        return shown

    shown = await eventually("an attempt", attempted)

    [attempt] = shown["attempts"]
    assert json.loads(shown["body"])["id"] == event_id
    assert (attempt["error"], attempt["response_status"]) == ("The connection was refused.", None)
    began = datetime.fromisoformat(attempt["attempted_at"])
    assert attempt["request_headers"] == {
        "content-type": "application/json",
        "webhook-id": event_id,
        "webhook-timestamp": str(int(began.timestamp())),
        "webhook-signature": "(not shown)",
    }
    assert shown["callback_url"] == NOWHERE
    with pytest.raises(NotFound):
        await desk.operate(
            contract.GET_DELIVERY, subscription_id=subscription_id, delivery_id=str(uuid.uuid4())
        )


async def test_a_delivery_is_sent_again_under_the_operators_name(desk: Desk) -> None:
    subscription_id = await desk.subscribe()
    delivery_id = await desk.delivery_of(await desk.record(), subscription_id)
    await desk.conclude(delivery_id, "failed")
    asked = {"subscription_id": subscription_id, "delivery_id": delivery_id, "reason": REASON}

    again = await desk.operate(contract.RESEND, **asked)
    await desk.set_status(subscription_id, "disabled")
    with pytest.raises(InvalidState):
        await desk.operate(contract.RESEND, **asked)

    assert (again["status"], again["subscription_status"]) == ("pending", "active")
    assert again["delivery_id"] != delivery_id
    listed = await desk.operate(contract.LIST_DELIVERIES, subscription_id=subscription_id)
    shown = await desk.operate(
        contract.GET_DELIVERY, subscription_id=subscription_id, delivery_id=delivery_id
    )
    for one in (*listed["items"], shown):
        assert one["subscription_status"] == "disabled"
    [entry] = await audited(desk, subscription_id)
    assert (entry["action"], entry["actor"]) == ("webhooks.resend", "operator:ada")
    assert (entry["delivery_id"], entry["new_delivery_id"]) == (delivery_id, again["delivery_id"])
    assert (entry["reason"], entry["request_id"]) == (REASON, "req-1")


async def test_what_failed_is_recovered_once(desk: Desk) -> None:
    subscription_id, since = await desk.subscribe(), datetime.now(UTC) - timedelta(hours=1)
    for _ in range(3):
        await desk.conclude(await desk.delivery_of(await desk.record(), subscription_id), "failed")
    asked = {"subscription_id": subscription_id, "since": since, "reason": REASON}

    first = await desk.operate(contract.RECOVER, **asked)
    second = await desk.operate(contract.RECOVER, **asked)
    with pytest.raises(Invalid):
        await desk.operate(
            contract.RECOVER, **asked | {"since": datetime.now(UTC) - timedelta(days=40)}
        )

    done = {"next": None}
    assert (first, second) == ({"scheduled": 3, **done}, {"scheduled": 0, **done})
    entries = await audited(desk, subscription_id)
    assert [entry["action"] for entry in entries] == ["webhooks.recover"] * 2
    assert [entry["scheduled"] for entry in entries] == [3, 0]


async def test_a_recovery_whose_time_ends_goes_on_where_it_was(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recovery, "BATCH", 2)
    subscription_id, since = await desk.subscribe(), datetime.now(UTC) - timedelta(hours=1)
    held = [await desk.record() for _ in range(3)]
    await desk.hold(subscription_id)
    failed = [await desk.record() for _ in range(3)]
    for event_id in failed:
        await desk.conclude(await desk.delivery_of(event_id, subscription_id), "failed")
    recoveries = OperatorRecoveries(desk.recorder, timedelta(days=30), lambda: None)

    async def recovered(*, deadline: float = 0, **changes: Any) -> contract.OperatorRecovery:
        asked = {"subscription_id": subscription_id, "since": since, "reason": REASON} | changes
        command = contract.OperatorRecover.model_validate(asked)
        done = (await recoveries.recover(OPERATOR, command, deadline)).data
        assert isinstance(done, contract.OperatorRecovery)
        return done

    first = await recovered()
    second = await recovered(after=first.next)
    rest = await recovered(after=second.next, deadline=time.time() + 60 * pace())

    assert [each.scheduled for each in (first, second, rest)] == [2, 3, 6]
    assert rest.next is None
    on_their_way = await desk.deliveries(subscription_id, status="pending", limit=100)
    assert sorted(ids(on_their_way, "event_id")) == sorted([*held, *failed])
    entries = await audited(desk, subscription_id)
    assert [entry["scheduled"] for entry in entries] == [2, 1, 2, 1]
    for wrong in ({"after": "nonsense"}, {"after": first.next, "since": datetime.now(UTC)}):
        with pytest.raises(Invalid):
            await recovered(**wrong)


async def test_a_disabled_subscription_gets_nothing_until_its_owner_makes_it_active(
    desk: Desk,
) -> None:
    subscription_id = await desk.subscribe()
    await desk.record()
    asked = {"subscription_id": subscription_id, "reason": REASON}

    disabled = await desk.operate(contract.DISABLE, **asked)
    again = await desk.operate(contract.DISABLE, **asked | {"reason": "Disabled already."})
    await desk.record()
    held = await desk.deliveries(subscription_id)
    active = await desk.ask(
        table.UPDATE_SUBSCRIPTION, desk.customer, subscription_id=subscription_id, status="active"
    )
    released = await desk.deliveries(subscription_id)

    assert (disabled["status"], again["status"]) == ("disabled", "disabled")
    assert [delivery["status"] for delivery in held] == ["held", "held"]
    assert active["status"] == "active"
    assert [delivery["status"] for delivery in released] == ["pending", "pending"]
    entries = await audited(desk, subscription_id)
    assert [(entry["action"], entry["reason"]) for entry in entries] == [
        ("webhooks.disable", REASON),
        ("webhooks.disable", "Disabled already."),
    ]
    await desk.set_status(subscription_id, "unavailable")
    with pytest.raises(InvalidState):
        await desk.operate(contract.DISABLE, **asked)


async def test_events_of_every_filter_are_listed_page_by_page(desk: Desk) -> None:
    made = [await desk.record() for _ in range(5)]
    wire = await desk.record("wire.completed", customer_id=desk.customers[1])
    everything = [*made, wire]

    async def listed(**values: Any) -> list[str]:
        return ids(await pages(desk, contract.LIST_EVENTS, limit=2, **values), "event_id")

    assert await listed(tenant=desk.tenant) == everything[::-1]
    assert await listed(tenant=desk.tenant, order="oldest") == everything
    assert await listed(tenant=desk.tenant, event_type="transaction") == made[::-1]
    assert await listed(tenant=desk.tenant, event_type="wire.completed") == [wire]
    newest = await desk.operate(contract.LIST_EVENTS, limit=200)
    of_wires = await desk.operate(contract.LIST_EVENTS, limit=200, event_type="wire")
    assert ids(newest["items"], "event_id")[:6] == everything[::-1]
    assert ids(of_wires["items"], "event_id")[0] == wire
    resource = newest["items"][0]["resource_id"]
    assert await listed(resource_id=resource) == [wire]
    assert await listed(resource_id=resource, event_type="transaction.created") == []
    assert await listed(resource_id=resource, tenant="nobody") == []


async def test_an_event_is_shown_with_its_deliveries_to_every_subscription(desk: Desk) -> None:
    first, second = await desk.subscribe(), await desk.subscribe(desk.partner)
    event_id = await desk.record()
    over = await desk.delivery_of(event_id, first)
    await desk.conclude(over, "failed")
    again = await desk.ask(
        table.RESEND_DELIVERY, desk.customer, subscription_id=first, delivery_id=over
    )
    await desk.set_status(second, "disabled")

    shown = await desk.operate(contract.GET_EVENT, event_id=event_id)

    assert shown["event"]["id"] == shown["event_id"] == event_id
    assert (shown["tenant"], shown["customer_id"]) == (desk.tenant, desk.customers[0])
    assert {(one["subscription_id"], one["delivery_id"]) for one in shown["deliveries"]} == {
        (first, over),
        (first, again["delivery_id"]),
        (second, await desk.delivery_of(event_id, second)),
    }
    statuses = {one["subscription_id"]: one["subscription_status"] for one in shown["deliveries"]}
    assert statuses == {first: "active", second: "disabled"}
    for unknown in ("evt_nonsense", f"evt_{uuid.uuid4()}"):
        with pytest.raises(NotFound):
            await desk.operate(contract.GET_EVENT, event_id=unknown)


async def test_the_search_finds_events_subscriptions_and_deliveries(desk: Desk) -> None:
    subscription_id = await desk.subscribe()
    event_id = await desk.record()
    delivery_id = await desk.delivery_of(event_id, subscription_id)

    async def kinds(wanted: str) -> list[tuple[str, str, str, str | None]]:
        row = search.FIND_ID_OF["webhook_dispatcher"]
        found = (await desk.operate(row, q=wanted))["found"]
        return [(one["kind"], one["id"], one["tenant"], one["subscription_id"]) for one in found]

    delivery = ("delivery", delivery_id, desk.tenant, subscription_id)
    assert await kinds(event_id) == [("event", event_id, desk.tenant, None)]
    assert await kinds(subscription_id) == [("subscription", subscription_id, desk.tenant, None)]
    assert await kinds(delivery_id) == [delivery]
    await desk.conclude(delivery_id, "succeeded")
    assert await kinds(delivery_id) == [delivery]
    assert await kinds(str(uuid.uuid4())) == []
