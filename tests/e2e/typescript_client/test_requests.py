"""What the client makes of what it is called with, and what it refuses before anything is sent."""

from __future__ import annotations

import json

from tests.e2e.typescript_client.running import NOWHERE, Run, needs_node
from tests.unit.client.answering import gateway, problem, success

pytestmark = needs_node


async def test_a_call_that_is_built_anew_has_the_same_body(play: Run) -> None:
    script = """
        const moved = (value) => Object.fromEntries(Object.entries(value).reverse());
        const person = { id: "p1", ownership_percentage: 25.5, last_name: null, tags: ["b", "a"] };
        class Person { constructor(values) { Object.assign(this, values); } }
        const bare = Object.assign(Object.create(null), moved(person));
        await client.sendWire({ ...wire, persons: [person] });
        await client.sendWire({ persons: [moved(person)], ...moved(wire) });
        await client.sendWire({ persons: [new Person(moved(person))], ...moved(wire) });
        await client.sendWire({ persons: [bare], ...moved(wire) });
    """
    async with gateway(success({})) as server:
        await play(server, script)

    [first, *anew] = server.received
    assert [again.body for again in anew] == [first.body] * 3
    assert json.loads(first.body)["persons"] == [
        {"id": "p1", "ownership_percentage": 25.5, "last_name": None, "tags": ["b", "a"]}
    ]


async def test_a_value_that_json_writes_as_another_one_is_sent_as_that(play: Run) -> None:
    script = """
        await client.onboardCustomer({
          a: [new Number(1.5), new String("b"), new Boolean(false)],
          b: { toJSON: () => ({ z: 1, y: new Date(0) }) },
        });
        await show(client.onboardCustomer({ a: Object(1n) }));
    """
    async with gateway(success({})) as server:
        (refused,) = await play(server, script)

    assert [request.body for request in server.received] == [
        b'{"a":[1.5,"b",false],"b":{"y":"1970-01-01T00:00:00.000Z","z":1}}'
    ]
    assert refused["name"] == "TypeError"


async def test_an_update_of_nothing_has_an_empty_object_for_its_body(play: Run) -> None:
    async with gateway(success({})) as server:
        await play(server, 'await client.setWirePolicy("c1", {}); await client.cancelWire("t1");')

    [update, without_body] = server.received
    assert (update.body, update.headers["Content-Type"]) == (b"{}", "application/json")
    assert (without_body.body, "Content-Type" in without_body.headers) == (b"", False)
    assert update.signed


async def test_null_is_left_out_of_headers_and_query_and_kept_in_a_body(play: Run) -> None:
    first = {"limit": 1, "total": 2, "offset": 0}
    page = success([{"location_id": 1}], pagination=first, as_of_date="2026-03-02")
    nothing = success([])
    script = """
        const due = { token_type: "rrc", settlement_date: "2025-01-01" };
        await client.listSettlementCalculations("a1", { ...due, source: null });
        await client.listWires({ state: null, page: null });
        await all(client.listDepositLocations("a1", { limit: 1, page: null, load_date: null }));
        await client.setWirePolicy("c1", { per_wire_limit: null });
    """
    async with gateway(nothing, nothing, page, nothing, success({})) as server:
        await play(server, script)

    [calculations, wires, _, following, policy] = server.received
    assert "source" not in calculations.headers
    assert wires.target == "/customer/wires"
    assert set(following.target.partition("?")[2].split("&")) == {
        "limit=1",
        "page=2",
        "load_date=2026-03-02",
    }
    assert policy.body == b'{"per_wire_limit":null}'


async def test_settings_that_are_undefined_have_their_defaults(play: Run) -> None:
    nothing = "{ attempts: undefined, patienceSeconds: undefined, timeoutSeconds: undefined, fetch: undefined }"
    unavailable = problem(503, "unavailable", headers={"Retry-After": "0"})
    async with gateway(unavailable, success([])) as server:
        script = f"await show(new b.Client({{ ...settings, ...{nothing} }}).listPartnerAccounts());"
        (answer,) = await play(server, script)

    assert answer["data"] == []
    assert len(server.received) == 2


async def test_an_address_with_a_user_or_a_password_is_refused_at_once(play: Run) -> None:
    script = """
        const baseUrl = settings.baseUrl.replace("//", "//user:password@");
        await show((async () => new b.Client({ ...settings, baseUrl }))());
    """
    (refused,) = await play(NOWHERE, script)

    assert refused["name"] == "TypeError"
    assert "password" in refused["message"]


async def test_a_limit_that_is_no_positive_finite_number_is_refused_at_once(play: Run) -> None:
    script = """
        const wrong = { attempts: 0, timeoutSeconds: 0, patienceSeconds: -1 };
        for (const [name, value] of Object.entries(wrong))
          for (const limit of [value, -0.5, NaN, Infinity, "5"])
            await show((async () => new b.Client({ ...settings, [name]: limit }))());
        new b.Client({ ...settings, attempts: 1, timeoutSeconds: 0.1, patienceSeconds: 0 });
    """
    refused = await play(NOWHERE, script)

    assert [(error["name"], error["message"]) for error in refused] == [
        ("RangeError", message)
        for message in (
            "attempts is no positive finite number.",
            "timeoutSeconds is no positive finite number.",
            "patienceSeconds is negative, or no finite number.",
        )
        for _ in range(5)
    ]


async def test_a_timeout_may_be_any_part_of_a_second_and_longer_than_a_timer(play: Run) -> None:
    script = """
        for (const timeoutSeconds of [2.01, 10 / 3, 1e9])
          await new b.Client({ ...settings, timeoutSeconds, attempts: 1 }).listPartnerAccounts();
    """
    async with gateway(success([])) as server:
        await play(server, script)

    assert len(server.received) == 3


async def test_an_idempotency_key_that_no_header_takes_is_refused_before_anything_is_sent(
    play: Run,
) -> None:
    script = """
        for (const idempotencyKey of given.keys) await show(client.sendWire(wire, { idempotencyKey }));
        await client.sendWire(wire, { idempotencyKey: "Invoice 2047 ~" });
    """
    keys = ["a\nb", "a\n", " a", "a ", "a\tb", "\u00e9", "\x7f"]
    async with gateway(success({})) as server:
        refused = await play(server, script, keys=keys)

    assert [error["name"] for error in refused] == ["TypeError"] * len(keys)
    assert refused[0]["message"].startswith("idempotencyKey takes up to 255 printable ASCII")
    assert [one.headers["Idempotency-Key"] for one in server.received] == ["Invoice 2047 ~"]


async def test_what_is_no_finite_number_is_refused_by_the_name_of_its_field(play: Run) -> None:
    script = """
        await show(client.setWirePolicy("c1", { per_wire_limit: Number("1,000") }));
        await show(client.onboardCustomer({ persons: [{ ownership_percentage: -Infinity }] }));
        await show(client.listWires({ limit: NaN }));
        await show(client.listSettlementCalculations("a1", { source: Infinity }));
    """
    async with gateway(success({})) as server:
        refused = await play(server, script)

    assert [error["name"] for error in refused] == ["TypeError"] * 4
    assert [error["message"] for error in refused] == [
        f"{name} is no finite number."
        for name in ("per_wire_limit", "ownership_percentage", "limit", "source")
    ]
    assert server.received == []
