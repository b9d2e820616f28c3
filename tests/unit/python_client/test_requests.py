"""What the Python client makes of what it is called with, and what it refuses before anything is sent."""

from __future__ import annotations

import math
import re
from decimal import Decimal
from typing import Any
from uuid import UUID

import httpx
import pytest

from bankside_client import AsyncClient, Client, exact_json
from tests.support.with_each import with_each
from tests.unit.client.answering import gateway, problem, success
from tests.unit.python_client.calling import SENT, WIRE, calling, failure


async def test_a_call_that_is_built_anew_has_the_same_body(kind: str) -> None:
    person = {"id": "p1", "ownership_percentage": Decimal("25.0")}
    async with gateway(success(WIRE)) as server, calling(kind, server.base_url) as call:
        await call("send_wire", **SENT, persons=[person])
        anew = {**SENT, "amount": Decimal("1234567890.1200")}
        moved = dict(reversed(person.items())) | {"ownership_percentage": Decimal(25)}
        await call("send_wire", persons=[moved], **dict(reversed(anew.items())))

    [first, again] = server.received
    assert first.body == again.body


@with_each(
    [
        ("2.5", b"2.5"),
        ("2.50", b"2.5"),
        ("1200.00", b"1200"),
        ("1200", b"1200"),
        ("1.2E+3", b"1200"),
        ("-0.10", b"-0.1"),
        ("0.00", b"0"),
        ("-0", b"0"),
        ("0E+5", b"0"),
        ("1.0E-30", b"0.000000000000000000000000000001"),
        ("12345678901234567890123456789012345.670", b"12345678901234567890123456789012345.67"),
    ]
)
def test_an_amount_has_one_form_and_every_digit(case: tuple[str, bytes]) -> None:
    text, written = case

    assert exact_json.encode(Decimal(text)) == written
    assert Decimal(written.decode()) == Decimal(text)


async def test_an_empty_idempotency_key_is_sent_as_it_is(kind: str) -> None:
    refused = problem(400, "idempotency_key_required")
    async with gateway(refused) as server:
        await failure(kind, server, "send_wire", idempotency_key="", **SENT)

    assert server.received[0].headers["Idempotency-Key"] == "", "for the gateway to refuse"


@pytest.mark.parametrize("key", ["a\nb", "a\n", " a", "a ", "a\tb", "\u00e9", "\x7f"], ids=repr)
async def test_an_idempotency_key_that_no_header_takes_is_refused_before_anything_is_sent(
    kind: str, key: str
) -> None:
    async with gateway(success(WIRE)) as server, calling(kind, server.base_url) as call:
        with pytest.raises(ValueError, match=r"^Idempotency-Key takes up to 255 printable ASCII"):
            await call("send_wire", idempotency_key=key, **SENT)

    assert server.received == []


async def test_each_printable_character_may_be_in_an_idempotency_key(kind: str) -> None:
    key = "".join(map(chr, range(0x21, 0x7F))) + " ~"
    async with gateway(success(WIRE)) as server, calling(kind, server.base_url) as call:
        await call("send_wire", idempotency_key=key, **SENT)

    assert server.received[0].headers["Idempotency-Key"] == key


@with_each(
    [
        ("attempts", 0),
        ("attempts", math.nan),
        ("patience_seconds", -1),
        ("patience_seconds", math.nan),
        ("timeout_seconds", 0),
        ("timeout_seconds", math.nan),
        ("timeout_seconds", math.inf),
    ]
)
def test_a_limit_that_bounds_nothing_is_refused(case: tuple[str, float]) -> None:
    name, limit = case
    limits: dict[str, Any] = {name: limit}

    for client in (Client, AsyncClient):
        with pytest.raises(ValueError, match=f"^{name} is "):
            client("http://localhost", "key", "secret", **limits)


async def test_other_values_that_no_header_takes_are_refused_before_anything_is_sent(
    kind: str,
) -> None:
    due = {"token_type": "rrc", "settlement_date": "2025-01-01"}
    async with gateway(success([])) as server, calling(kind, server.base_url) as call:
        with pytest.raises(ValueError, match=r"^source takes up to 255 printable ASCII"):
            await call("list_settlement_calculations", "a1", source="a\nb", **due)
    with pytest.raises(ValueError, match="subscription key has a character that no header"):
        Client("http://a", "sub_x\n", "secret")

    assert server.received == []


async def test_an_update_of_nothing_has_an_empty_object_for_its_body(kind: str) -> None:
    async with gateway(success({})) as server, calling(kind, server.base_url) as call:
        await call("set_wire_policy", "c1")
        await call("cancel_wire", "t1")

    [update, without_body] = server.received
    assert (update.body, update.headers["Content-Type"]) == (b"{}", "application/json")
    assert (without_body.body, "Content-Type" in without_body.headers) == (b"", False)
    assert update.signed


async def test_none_is_left_out_of_headers_and_query_and_kept_in_a_body(kind: str) -> None:
    first = {"limit": 1, "total": 2, "offset": 0}
    page = success([{"location_id": 1}], pagination=first, as_of_date="2026-03-02")
    nothing = success([])
    async with (
        gateway(nothing, nothing, page, nothing, success({})) as server,
        calling(kind, server.base_url) as call,
    ):
        due = {"token_type": "rrc", "settlement_date": "2025-01-01"}
        await call("list_settlement_calculations", "a1", source=None, **due)
        await call("list_wires", state=None, page=None)
        await call("list_deposit_locations", "a1", limit=1, page=None, load_date=None)
        await call("set_wire_policy", "c1", per_wire_limit=None)

    [calculations, wires, _, following, policy] = server.received
    assert "source" not in calculations.headers
    assert wires.target == "/customer/wires"
    assert set(following.target.partition("?")[2].split("&")) == {
        "limit=1",
        "page=2",
        "load_date=2026-03-02",
    }
    assert policy.body == b'{"per_wire_limit":null}'


async def test_an_id_may_be_a_uuid(kind: str) -> None:
    wire = UUID("0197D3A0-0000-7000-8000-00000000000A")
    async with gateway(success(WIRE)) as server, calling(kind, server.base_url) as call:
        await call("get_wire", wire)
        await call("onboard_customer", persons=[{"id": wire}])

    [path, body] = server.received
    assert path.target == "/customer/wires/0197d3a0-0000-7000-8000-00000000000a"
    assert body.body == b'{"persons":[{"id":"0197d3a0-0000-7000-8000-00000000000a"}]}'


@pytest.mark.parametrize(
    ("given", "told"),
    [(None, "An id is missing."), ("", "An id is missing."), ("..", ".. is no id.")],
)
async def test_a_path_without_an_id_is_refused_before_anything_is_sent(
    kind: str, given: str | None, told: str
) -> None:
    async with gateway(success(WIRE)) as server, calling(kind, server.base_url) as call:
        with pytest.raises(ValueError, match=f"^{re.escape(told)}$"):
            await call("get_wire", given)

    assert server.received == []


async def test_a_float_is_refused_before_anything_is_sent(kind: str) -> None:
    async with gateway(success(WIRE)) as server, calling(kind, server.base_url) as call:
        with pytest.raises(TypeError, match="a float loses digits"):
            await call("send_wire", **{**SENT, "amount": 12.5})

    assert server.received == []


@pytest.mark.parametrize("text", ["NaN", "-Infinity"])
async def test_what_is_no_finite_number_is_refused_by_the_name_of_its_field(
    kind: str, text: str
) -> None:
    owner = {"ownership_percentage": Decimal(text)}
    async with gateway(success({})) as server, calling(kind, server.base_url) as call:
        with pytest.raises(TypeError, match=r"^per_wire_limit is no finite number"):
            await call("set_wire_policy", "c1", per_wire_limit=Decimal(text))
        with pytest.raises(TypeError, match=r"^ownership_percentage is no finite number"):
            await call("onboard_customer", persons=[owner])

    assert server.received == []


def test_an_address_that_is_no_gateways_is_refused_at_once() -> None:
    with pytest.raises(ValueError, match="not that of a gateway"):
        Client("bank.example.com", "sub_x", "secret")


async def test_a_client_of_the_callers_is_used_and_left_open() -> None:
    async with httpx.AsyncClient(headers={"X-Mine": "1"}) as http, gateway(success(WIRE)) as server:
        async with calling("async", server.base_url, http=http) as call:
            await call("send_wire", **SENT)

        assert not http.is_closed
