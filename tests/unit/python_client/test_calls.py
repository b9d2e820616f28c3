"""The Python client for callers, over real HTTP: both kinds make the same requests and take answers alike."""

from __future__ import annotations

import asyncio
import math
import re
from collections.abc import Callable
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import UUID

import httpx
import pytest
from aiohttp import web

from bankside_client import (
    AsyncClient,
    BanksideError,
    Client,
    Conflict,
    InvalidRequest,
    OutcomeUnknown,
    RateLimited,
    ServerError,
    Unavailable,
    exact_json,
)
from tests.support.certificates import Authority, behind_tls
from tests.support.with_each import with_each
from tests.unit.client.answering import DROP, KEY, Gateway, gateway, problem, success
from tests.unit.python_client.calling import SENT, WIRE, calling, failure, plain

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
UNAVAILABLE = problem(503, "unavailable", headers={"Retry-After": "0"})


async def test_a_retry_is_signed_anew_under_the_same_key_and_body(kind: str) -> None:
    async with (
        gateway(
            UNAVAILABLE, DROP, success(WIRE, headers={"Idempotent-Replayed": "true"})
        ) as server,
        calling(kind, server.base_url) as call,
    ):
        answer = await call("send_wire", **SENT)

    assert answer.replayed
    assert answer.data.amount == Decimal("1234567890.12")
    assert [request.signed for request in server.received] == [True] * 3
    assert len({request.headers["X-API-NONCE"] for request in server.received}) == 3
    assert len({request.headers["Idempotency-Key"] for request in server.received}) == 1
    assert {request.body for request in server.received} == {
        b'{"amount":1234567890.12,"external_account_id":"e","purpose":"Invoice","sending_account_id":"a"}'
    }


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


async def test_a_pause_is_the_one_that_the_answer_asks_for(kind: str) -> None:
    late = problem(429, "rate_limited", headers={"Retry-After": "3600"})
    async with gateway(late, success(WIRE)) as server:
        error = await failure(kind, server, "send_wire", **SENT)

    assert (error.code, error.status, len(server.received)) == ("rate_limited", 429, 1)


async def test_an_error_names_code_what_to_do_and_request(kind: str) -> None:
    refused = problem(
        409, "insufficient_funds", transaction_id="t1", headers={"X-Request-Id": "r-1"}
    )
    async with gateway(refused) as server:
        error = await failure(kind, server, "send_wire", idempotency_key="invoice-7", **SENT)

    assert type(error) is Conflict
    assert str(error) == (
        "insufficient_funds: No. Wait for funds or send less; then use a new Idempotency-Key. (request r-1)"
    )
    assert (error.problem["transaction_id"], error.idempotency_key) == ("t1", "invoice-7")


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


async def test_an_error_of_values_says_which(kind: str) -> None:
    def refused() -> Any:
        value = {"loc": ["body", "amount"], "msg": "Input should be greater than 0", "type": "x"}
        ended = [
            {"loc": ["body", "callback_url"], "msg": "The URL is not https.", "type": "y"},
            {"loc": ["query", "sate"], "msg": "did you mean `state`?", "type": "z"},
        ]
        return plain(422, {"detail": [value, *ended]})

    async with gateway(refused) as server:
        error = await failure(kind, server, "send_wire", **SENT)

    assert type(error) is InvalidRequest
    assert error.detail == (
        "body.amount: Input should be greater than 0. body.callback_url: The URL is not https."
        " query.sate: did you mean `state`?"
    )
    assert error.errors[0]["type"] == "x"


@pytest.mark.parametrize(
    ("found", "detail"),
    [
        (["no", None, {"loc": 7, "msg": "It is blocked"}, {"reason": "x"}], "It is blocked."),
        (["no"], "The answer is 422."),
    ],
    ids=["some of it", "none of it"],
)
async def test_a_422_of_a_proxy_is_an_error_with_what_of_it_can_be_read(
    kind: str, found: list[Any], detail: str
) -> None:
    async with gateway(lambda: plain(422, {"detail": found})) as server:
        error = await failure(kind, server, "send_wire", **SENT)

    assert type(error) is InvalidRequest
    assert (error.detail, error.errors) == (detail, found)
    assert error.idempotency_key == server.received[0].headers["Idempotency-Key"]


@pytest.mark.parametrize(
    "answers",
    [(DROP, UNAVAILABLE), (lambda: plain(503, {"code": "unavailable", "detail": "x"}),)],
    ids=["lost, then unavailable", "a proxy's 503"],
)
async def test_the_outcome_of_a_write_that_may_have_arrived_is_unknown(
    kind: str, answers: tuple[Any, ...]
) -> None:
    async with gateway(*answers) as server:
        error = await failure(kind, server, "send_wire", idempotency_key="k", **SENT)

    assert type(error) is OutcomeUnknown
    assert (error.code, error.idempotency_key, len(server.received)) == ("no_answer", "k", 3)
    assert error.request_id in server.received[-1].headers.values()


@pytest.mark.parametrize(
    "refusal",
    [
        problem(408, "request_timeout"),
        problem(401, "timestamp_out_of_window"),
        problem(403, "address_not_allowed"),
        lambda: plain(422, {"detail": [{"loc": ["body", "purpose"], "msg": "no", "type": "x"}]}),
        lambda: web.Response(status=404, text="Nothing here."),
    ],
    ids=["408", "401", "403", "422", "a proxy's page"],
)
async def test_a_refusal_of_a_retry_says_nothing_of_the_send_before(
    kind: str, refusal: Callable[[], web.Response]
) -> None:
    async with gateway(DROP, refusal) as server:
        unknown = await failure(kind, server, "send_wire", **SENT)
    async with gateway(refusal) as server:
        refused = await failure(kind, server, "send_wire", **SENT)
    async with gateway(DROP, refusal) as server:
        of_a_read = await failure(kind, server, "get_wire", "t1")

    assert type(unknown) is OutcomeUnknown
    assert "An earlier send may have been carried out." in str(unknown)
    assert not isinstance(refused, OutcomeUnknown)
    assert not isinstance(of_a_read, OutcomeUnknown)


@pytest.mark.parametrize(
    ("status", "code", "expected"),
    [(429, "rate_limited", RateLimited), (503, "unavailable", Unavailable)],
)
async def test_a_read_whose_retries_fail_ends_with_the_reason_of_the_last_one(
    kind: str, status: int, code: str, expected: type[BanksideError]
) -> None:
    async with gateway(DROP, problem(status, code, headers={"Retry-After": "0"})) as server:
        error = await failure(kind, server, "get_wire", "t1")

    assert (type(error), error.code, error.status) == (expected, code, status)
    assert len(server.received) == 3


@pytest.mark.parametrize(("status", "code"), [(500, "internal_error"), (502, "provider_error")])
async def test_a_fault_leaves_the_outcome_of_a_write_unknown_and_is_not_tried_again(
    kind: str, status: int, code: str
) -> None:
    async with gateway(problem(status, code)) as server:
        of_a_write = await failure(kind, server, "send_wire", idempotency_key="k", **SENT)
        of_a_read = await failure(kind, server, "get_wire", "t1")
    async with gateway(DROP, problem(status, code)) as after_a_send:
        of_a_retry = await failure(kind, after_a_send, "send_wire", idempotency_key="k", **SENT)

    assert (type(of_a_retry), of_a_retry.idempotency_key) == (OutcomeUnknown, "k")
    assert (type(of_a_write), of_a_write.code) == (OutcomeUnknown, code)
    assert (of_a_write.status, of_a_write.idempotency_key) == (status, "k")
    assert (type(of_a_read), of_a_read.code) == (ServerError, code)
    assert len(server.received) == 2


async def test_a_write_whose_fresh_nonce_was_used_is_sent_again_under_its_key(kind: str) -> None:
    reused = problem(401, "nonce_reused")
    async with gateway(reused, success(WIRE)) as server, calling(kind, server.base_url) as call:
        answer = await call("send_wire", **SENT)

    assert answer.data.transaction_id == "t1"
    assert len({request.headers["Idempotency-Key"] for request in server.received}) == 1
    assert len({request.headers["X-API-NONCE"] for request in server.received}) == 2


@pytest.mark.parametrize("after", ["nonce_reused", "address_not_allowed"])
async def test_a_fresh_nonce_that_was_used_leaves_the_outcome_of_a_write_unknown(
    kind: str, after: str
) -> None:
    async with gateway(problem(401, "nonce_reused"), problem(403, after)) as server:
        error = await failure(kind, server, "send_wire", idempotency_key="k", **SENT)

    assert (type(error), error.code, error.idempotency_key) == (OutcomeUnknown, "no_answer", "k")


@pytest.mark.parametrize("code", ["idempotency_in_progress", "abandoned", "idempotency_key_reused"])
async def test_a_conflict_with_a_request_that_may_be_carried_out_is_no_refusal(
    kind: str, code: str
) -> None:
    conflict = problem(409, code, transaction_id="t1", headers={"Retry-After": "0"})
    async with gateway(conflict) as server:
        error = await failure(kind, server, "send_wire", **SENT)

    assert (type(error), error.code, error.status) == (OutcomeUnknown, code, 409)
    assert error.problem["transaction_id"] == "t1"


async def test_without_a_connection_nothing_was_sent(kind: str) -> None:
    async with gateway() as server:
        pass  # its port is free again

    error = await failure(kind, server, "send_wire", **SENT)

    assert (type(error), error.code) == (Unavailable, "no_connection")
    assert error.detail.startswith("There is no connection to 127.0.0.1: ")
    assert error.detail.endswith(f"{error.__cause__}.")


async def test_a_certificate_that_is_not_trusted_is_told_and_nothing_was_sent(
    kind: str, tmp_path: Path
) -> None:
    identity = Authority(tmp_path).identity()
    async with gateway(success(WIRE)) as server, behind_tls(server.base_url, identity) as url:
        behind = Gateway(url.replace("http:", "https:"), [])
        error = await failure(kind, behind, "send_wire", **SENT)

    assert (type(error), error.code) == (Unavailable, "no_connection")
    assert error.detail.startswith("There is no connection to localhost: ")
    assert "unable to get local issuer certificate" in error.detail
    assert server.received == []


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


async def test_what_a_newer_gateway_adds_and_an_older_one_lacks_is_taken(kind: str) -> None:
    policy = {"per_wire_limit": 10, "new_field": 1}
    async with gateway(success(policy)) as server, calling(kind, server.base_url) as call:
        answer = await call("get_own_wire_policy")

    assert type(answer.data.per_wire_limit) is Decimal
    assert answer.data.daily_limit is None


@pytest.mark.parametrize("status", [500, 502, 520, 524])
async def test_a_5xx_that_is_not_the_gateways_leaves_the_outcome_of_a_write_unknown(
    kind: str, status: int
) -> None:
    def page() -> web.Response:
        return web.Response(status=status, text="<html>")

    async with gateway(page, success(WIRE)) as server, calling(kind, server.base_url) as call:
        answer = await call("send_wire", **SENT)
    async with gateway(page) as lost:
        error = await failure(kind, lost, "send_wire", idempotency_key="k", **SENT)

    assert answer.data.transaction_id == "t1"
    assert len({request.headers["Idempotency-Key"] for request in server.received}) == 1
    assert (type(error), error.code, error.idempotency_key) == (OutcomeUnknown, "no_answer", "k")


async def test_a_429_of_a_proxy_is_tried_again(kind: str) -> None:
    def page() -> web.Response:
        return web.Response(status=429, text="<html>", headers={"Retry-After": "0"})

    async with gateway(page, success(WIRE)) as server, calling(kind, server.base_url) as call:
        answer = await call("send_wire", **SENT)

    assert answer.data.transaction_id == "t1"
    assert len(server.received) == 2


@pytest.mark.parametrize("status", [429, 503])
async def test_an_answer_with_an_unknown_code_is_retried_by_its_status(
    kind: str, status: int
) -> None:
    later = problem(status, "a_code_of_a_later_release", headers={"Retry-After": "0"})
    async with gateway(later, success(WIRE)) as server, calling(kind, server.base_url) as call:
        answer = await call("send_wire", **SENT)

    assert answer.data.transaction_id == "t1"
    assert len({request.headers["Idempotency-Key"] for request in server.received}) == 1


@pytest.mark.parametrize("before", [(), (DROP,)], ids=["first send", "retry"])
async def test_a_success_of_a_write_that_cannot_be_read_leaves_its_outcome_unknown(
    kind: str, before: tuple[str, ...]
) -> None:
    async with gateway(*before, lambda: web.Response(text="<html>")) as server:
        error = await failure(kind, server, "send_wire", idempotency_key="k", **SENT)

    assert type(error) is OutcomeUnknown
    assert (error.code, error.status, error.idempotency_key) == ("no_answer", 200, "k")
    assert len(server.received) == len(before) + 1


async def test_an_answer_that_is_no_envelope_is_an_error_of_its_own(kind: str) -> None:
    async with gateway(lambda: plain(200, ["hello"])) as server:
        error = await failure(kind, server, "get_own_wire_policy")

    assert (type(error), error.code) == (ServerError, "unreadable_answer")


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
