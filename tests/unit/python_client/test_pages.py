"""Lists and events are read to their end, page by page."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

from bankside_client import AsyncClient, Client
from tests.unit.client.answering import KEY, gateway, success
from tests.unit.python_client.calling import calling

EVENT = {
    "id": "evt_1",
    "type": "wire.completed",
    "timestamp": "2026-01-31T12:00:00Z",
    "api_version": "0.1.0",
    "sequence": 3,
    "data": {
        "object": "wire",
        "transaction_id": "t1",
        "state": "completed",
        "amount": Decimal("12.50"),
    },
}


async def test_iterating_asks_for_the_pages_that_follow(kind: str) -> None:
    def page(number: int) -> Any:
        subscription = {"delivery_id": f"d{number}"}
        return success([subscription], pagination={"limit": 1, "total": 2, "page": number})

    async with (
        gateway(page(1), page(2)) as server,
        calling(kind, server.base_url) as call,
    ):
        items = await call("list_customer_deliveries", "s/1", limit=1)

    assert [item.delivery_id for item in items] == ["d1", "d2"]
    assert [request.target.rpartition("/")[2] for request in server.received] == [
        "deliveries?limit=1",
        "deliveries?limit=1&page=2",
    ]
    assert "/s%2F1/" in server.received[0].target


async def test_a_list_of_one_state_is_read_to_its_end_before_its_first_item_comes() -> None:
    def page(number: int) -> Any:
        wire = {"transaction_id": f"t{number}"}
        return success([wire], pagination={"limit": 1, "total": 3, "page": number})

    async with gateway(page(1), page(2), page(3)) as server:

        def read_first() -> list[int]:
            """Of how many pages were asked for as each item came."""
            with Client(server.base_url, KEY.subscription_key, KEY.secret) as client:
                wires = client.list_wires(state="pending_approval", limit=1)
                return [len(server.received) for _ in wires]

        in_sync = await asyncio.to_thread(read_first)
    async with (
        gateway(page(1), page(2), page(3)) as server,
        AsyncClient(server.base_url, KEY.subscription_key, KEY.secret) as client,
    ):
        wires = await client.list_wires(state="pending_approval", limit=1)
        in_async = [len(server.received) async for _ in wires]

    assert in_sync == in_async == [3, 3, 3]


async def test_pages_of_deposit_locations_are_of_the_load_of_the_first_one(kind: str) -> None:
    def page(number: int) -> Any:
        location = {"location_id": number}
        pagination = {"limit": 1, "total": 2, "offset": number - 1}
        return success([location], pagination=pagination, as_of_date="2026-03-02")

    async with (
        gateway(page(1), page(2)) as server,
        calling(kind, server.base_url) as call,
    ):
        items = await call("list_deposit_locations", "a_1", limit=1)

    assert [item.location_id for item in items] == [1, 2]
    [first, second] = [request.target.partition("?")[2] for request in server.received]
    assert (first, set(second.split("&"))) == (
        "limit=1",
        {"limit=1", "page=2", "load_date=2026-03-02"},
    )


async def test_events_go_on_after_the_last_one_and_end_with_the_latest(kind: str) -> None:
    async with (
        gateway(
            success([EVENT, {**EVENT, "id": "evt_2", "type": "new.type"}]), success([])
        ) as server,
        calling(kind, server.base_url) as call,
    ):
        first, second = await call("list_partner_events", after="evt_0")

    assert first.data.state == "completed"
    assert first.timestamp == datetime(2026, 1, 31, 12, tzinfo=UTC)
    assert second.data["amount"] == Decimal("12.50")
    assert [request.target.partition("?")[2] for request in server.received] == [
        "after=evt_0",
        "after=evt_2",
    ]
