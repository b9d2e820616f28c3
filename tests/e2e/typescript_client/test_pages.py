"""Lists are read to their end, page by page."""

from __future__ import annotations

from typing import Any

from tests.e2e.typescript_client.running import Run, needs_node
from tests.unit.client.answering import gateway, success

pytestmark = needs_node


async def test_iterating_asks_for_the_pages_and_events_that_follow(play: Run) -> None:
    def page(number: int) -> Any:
        pagination = {"limit": 1, "total": 2, "page": number}
        return success([{"delivery_id": f"d{number}"}], pagination=pagination)

    events = success([{"id": "evt_1"}]), success([{"id": "evt_2"}]), success([])
    async with gateway(page(1), page(2), *events) as server:
        script = """
            await show(all(client.listCustomerDeliveries("s/1", { limit: 1 })));
            await show(all(client.listPartnerEvents({ after: "evt_0" })));
        """
        deliveries, listed = await play(server, script)

    assert deliveries == [{"delivery_id": "d1"}, {"delivery_id": "d2"}]
    assert listed == [{"id": "evt_1"}, {"id": "evt_2"}]
    assert all(request.signed for request in server.received)
    assert [request.target.rpartition("/")[2] for request in server.received] == [
        "deliveries?limit=1",
        "deliveries?limit=1&page=2",
        "events?after=evt_0",
        "events?after=evt_1",
        "events?after=evt_2",
    ]
    assert "/s%2F1/" in server.received[0].target


async def test_a_list_of_one_state_is_read_to_its_end_before_its_first_item_comes(
    play: Run,
) -> None:
    def page(number: int) -> Any:
        pagination = {"limit": 1, "total": 3, "page": number}
        return success([{"transaction_id": f"t{number}"}], pagination=pagination)

    wire = success({"transaction_id": "t"})
    async with gateway(page(1), page(2), page(3), wire) as server:
        script = """
            for await (const wire of await client.listWires({ state: "pending_approval", limit: 1 })) {
              await client.approveWire(wire.transaction_id);
            }
        """
        await play(server, script)

    asked = [request.target.removeprefix("/customer/wires") for request in server.received]
    assert asked == [
        "?state=pending_approval&limit=1",
        "?state=pending_approval&limit=1&page=2",
        "?state=pending_approval&limit=1&page=3",
        "/t1/approve",
        "/t2/approve",
        "/t3/approve",
    ]


async def test_pages_of_deposit_locations_are_of_the_load_of_the_first_one(play: Run) -> None:
    def page(number: int) -> Any:
        pagination = {"limit": 1, "total": 2, "offset": number - 1}
        return success([{"location_id": number}], pagination=pagination, as_of_date="2026-03-02")

    async with gateway(page(1), page(2)) as server:
        script = 'await show(all(client.listDepositLocations("a_1", { limit: 1 })));'
        (locations,) = await play(server, script)

    assert locations == [{"location_id": 1}, {"location_id": 2}]
    [first, second] = [request.target.partition("?")[2] for request in server.received]
    assert (first, second) == ("limit=1", "limit=1&load_date=2026-03-02&page=2")
