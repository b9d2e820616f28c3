"""Events as they are listed: exactly as delivered, by whoever may see them, missing none."""

from __future__ import annotations

import asyncio
import json
import uuid
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from libs.contracts import webhook_operations as table
from libs.contracts.errors import NotFound
from libs.contracts.principal import Principal
from tests.integration.webhooks.api.desk import Desk, event_id_at
from tests.support.pace import pace

pytestmark = pytest.mark.asyncio(loop_scope="session")

ODD_BODY = (
    b'{"data": {"amount":1234567890123456.78,  "small":1e-7, "note":"\\u00e9 \xc3\xa9"} ,'
    b'"id":"x","type":"transaction.created","sequence":1, "api_version":"0.1.0",'
    b'"timestamp":"2026-01-31T12:00:00Z"}'
)


async def listed(desk: Desk, who: Principal, **asked: Any) -> list[str]:
    return [event["id"] for event in await desk.ask(table.LIST_EVENTS, who, **asked)]


async def test_events_are_listed_oldest_first_and_go_on_after_the_last_one_seen(desk: Desk) -> None:
    recorded = [await desk.record() for _ in range(5)]

    first = await listed(desk, desk.customer, limit=2)
    second = await listed(desk, desk.customer, limit=2, after=first[-1])
    third = await listed(desk, desk.customer, limit=2, after=second[-1])

    assert [*first, *second, *third] == recorded
    assert await listed(desk, desk.customer, after=recorded[-1]) == []


async def test_the_order_is_that_of_recording_and_not_of_the_time_within_the_id(desk: Desk) -> None:
    now = datetime.now(UTC)
    recorded = [await desk.record(at=now - timedelta(days=n)) for n in (0, 2, 1)]

    assert await listed(desk, desk.customer) == recorded
    assert await listed(desk, desk.customer, after=recorded[1]) == recorded[2:]


async def test_what_is_told_of_a_customer_s_subscription_is_not_its_partner_s_to_see(
    desk: Desk,
) -> None:
    asked = {"subscription_id": await desk.subscribe()}
    of_partner = {"subscription_id": await desk.subscribe(desk.partner)}

    tested = await desk.ask(table.TEST_SUBSCRIPTION, desk.customer, **asked)
    other = await desk.record("transaction.created")
    own = await desk.ask(table.TEST_SUBSCRIPTION, desk.partner, **of_partner)

    hidden = tested["event_id"]
    assert await listed(desk, desk.customer) == [hidden, other]
    for event_type, expected in {
        "*": [other, own["event_id"]],
        "webhook_subscription": [own["event_id"]],
    }.items():
        assert await listed(desk, desk.partner, event_type=event_type) == expected
    with pytest.raises(NotFound):
        await desk.ask(table.GET_EVENT, desk.partner, event_id=hidden)
    with pytest.raises(NotFound):
        await listed(desk, desk.partner, after=hidden)
    delivered = await desk.deliveries(**of_partner, who=desk.partner)
    assert [delivery["event_id"] for delivery in delivered] == [own["event_id"], other]


async def test_a_customer_sees_its_own_and_a_partner_those_of_all_its_customers(desk: Desk) -> None:
    own = await desk.record()
    other = await desk.record(customer_id=desk.customers[1])
    of_partner = await desk.record("webhook_subscription.unavailable", customer_id="")

    assert await listed(desk, desk.customer) == [own]
    assert await listed(desk, desk.other_customer) == [other]
    assert await listed(desk, desk.partner) == [own, other, of_partner]
    assert await listed(desk, desk.stranger) == []
    for who in (desk.other_customer, desk.stranger):
        with pytest.raises(NotFound):
            await desk.ask(table.GET_EVENT, who, event_id=own)
        with pytest.raises(NotFound):
            await listed(desk, who, after=own)


@pytest.mark.parametrize(
    ("event_type", "expected"),
    [
        ("wire.created", {"wire.created"}),
        ("wire", {"wire.created", "wire.completed"}),
        ("*", {"wire.created", "wire.completed", "transaction.created"}),
        ("account", set()),
    ],
)
async def test_a_filter_is_a_type_a_kind_or_everything(
    desk: Desk, event_type: str, expected: set[str]
) -> None:
    types = ["wire.created", "transaction.created", "wire.completed", "wire.created"]
    recorded = {await desk.record(name): name for name in types}

    for who in (desk.customer, desk.partner):
        found = await listed(desk, who, event_type=event_type)
        assert found == [event for event, name in recorded.items() if name in expected]
        assert await listed(desk, who, event_type=event_type, limit=1) == found[:1]
        last = next(iter(recorded))
        expected_after = [event for event in found if event != last]
        assert await listed(desk, who, event_type=event_type, after=last) == expected_after


@pytest.mark.parametrize(
    "after",
    [
        "evt_019b0000-0000-7000-8000-000000000001",
        "evt_212b10bd-e4dd-4274-9cfb-d9f1868dae90",
        "019b0000-0000-7000-8000-000000000001",
        "evt_",
        "evt_ffffffff-ffff-7fff-bfff-ffffffffffff",
        "nonsense",
    ],
)
async def test_an_event_that_is_not_kept_is_not_found_nor_gone_on_after(
    desk: Desk, after: str
) -> None:
    await desk.record()

    for unknown in (after, event_id_at(datetime.now(UTC))):
        with pytest.raises(NotFound):
            await listed(desk, desk.customer, after=unknown)
        with pytest.raises(NotFound):
            await desk.ask(table.GET_EVENT, desk.customer, event_id=unknown)


async def test_a_reply_holds_the_bytes_that_are_delivered(desk: Desk) -> None:
    event_id = await desk.record(body=ODD_BODY)
    replies: list[bytes] = []
    opened = desk.service_client.open_result

    def tapped(operation: Any, reply: Any) -> Any:
        replies.append(bytes(reply.result))
        return opened(operation, reply)

    desk.service_client.open_result = tapped  # type: ignore[method-assign]

    await desk.ask(table.GET_EVENT, desk.customer, event_id=event_id)
    await desk.ask(table.LIST_EVENTS, desk.customer)

    assert replies == [b'{"data":' + ODD_BODY + b"}", b'{"data":[' + ODD_BODY + b"]}"]


async def test_who_polls_while_many_write_misses_none(desk: Desk) -> None:
    async def write(count: int) -> list[str]:
        return [await desk.record() for _ in range(count)]

    async def poll() -> list[str]:
        seen: list[str] = []
        while len(seen) < 200:
            after = {"after": seen[-1]} if seen else {}
            seen += await listed(desk, desk.customer, limit=7, **after)
        return seen

    async with asyncio.timeout(60 * pace()):
        seen, *written = await asyncio.gather(poll(), *(write(50) for _ in range(4)))

    assert len(seen) == len(set(seen))
    assert set(seen) == {event for events in written for event in events}


async def test_a_rare_type_is_found_without_a_walk_over_all_others(desk: Desk) -> None:
    await desk.record("statement.available")
    first = await desk.record()
    await desk.database.execute(
        "INSERT INTO event SELECT day, gen_random_uuid(), position - 100000 + n, tenant, customer_id, type,"
        " resource_id, sequence, body, recorded_at FROM event, generate_series(1, 20000) AS n WHERE id = $1",
        uuid.UUID(first.removeprefix("evt_")),
    )
    rare = await desk.record("statement.available")
    await desk.database.execute("ANALYZE event")
    customer = "AND e.customer_id = '" + desk.customers[0] + "'"

    for scope in ("", customer):
        # As repository/events.py asks for one of a kind.
        (plan,) = await desk.rows(
            "EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) SELECT found.body FROM unnest(ARRAY['statement.available'])"
            " AS wanted (type) CROSS JOIN LATERAL (SELECT e.position, e.body FROM event e"
            f" WHERE e.tenant = '{desk.tenant}' {scope} AND e.position > -1000000 AND e.type = wanted.type"
            " ORDER BY e.position LIMIT 50) AS found ORDER BY found.position LIMIT 50"
        )
        top = json.loads(plan["QUERY PLAN"])[0]["Plan"]
        assert top["Actual Rows"] == 2
        assert top["Shared Hit Blocks"] + top["Shared Read Blocks"] < 300

    assert (await listed(desk, desk.partner, event_type="statement"))[-1] == rare
