"""What is checked in which order, and how each refusal reads: interface §1 and §2."""

from __future__ import annotations

import asyncio
import json
import re
import time
import uuid
from decimal import Decimal
from email.utils import parsedate_to_datetime
from typing import Any

import pytest

from libs.contracts import ledger_read_operations as ledger_read
from libs.contracts.accounts import GetBalance
from libs.contracts.errors import NotFound
from libs.contracts.principal import Family, Principal, Scope
from libs.contracts.result import Result
from libs.contracts.table import FAMILY_SCOPES
from tests.integration.gateway.desk import (
    Desk,
    RawAnswer,
    a_balance,
    answering,
    raw_request,
    signed_request,
    verdict,
)
from tests.support import people
from tests.support.api import Answer, signed_headers

CUSTOMERS = "/partner/reseller/customers"
PERSON = "/partner/reseller/customers/person/5a9cf8a8-5a0e-4b6c-9d2c-6e7a2f6f6d01"
ACCOUNT = "/partner/reseller/accounts/acct_1"
LARGE = b'{"a":"' + b"x" * 262_144 + b'"}'
PROBLEM_MEMBERS = {"type", "title", "status", "detail", "code", "request_id"}


def locs(answer: Answer) -> dict[tuple[Any, ...], str]:
    assert answer.status == 422, answer.body
    return {tuple(error["loc"]): error["type"] for error in answer.body["detail"]}


@pytest.mark.parametrize(
    "target", ["/nothing", "/partner", "/partner/reseller/nothing", f"{CUSTOMERS}/", "/health"]
)
async def test_an_unknown_path_is_not_found_before_anything_else(desk: Desk, target: str) -> None:
    answer = await desk.api().send("POST", target, LARGE, {})

    assert verdict(answer) == (404, "not_found")
    assert answer.body["detail"].startswith("There is no such path: ")


async def test_a_path_without_the_method_tells_which_it_takes(desk: Desk) -> None:
    answer = await desk.api().send("DELETE", CUSTOMERS, LARGE, {})

    assert verdict(answer) == (405, "method_not_allowed")
    assert answer.headers["Allow"] == "GET, POST"


async def test_an_announced_size_is_refused_without_waiting_for_the_body(desk: Desk) -> None:
    answer = await desk.raw(raw_request("POST", CUSTOMERS, {"Content-Length": "262145"}))

    assert verdict(answer) == (413, "body_too_large")


async def test_a_body_that_grows_too_large_in_chunks_is_refused(desk: Desk) -> None:
    chunks = b"".join(b"8000\r\n" + b"x" * 0x8000 + b"\r\n" for _ in range(9))

    headers = signed_headers(await desk.key(), "POST", CUSTOMERS, b"")

    answer = await desk.raw(
        raw_request("POST", CUSTOMERS, headers | {"Transfer-Encoding": "chunked"}, chunks)
    )

    assert verdict(answer) == (413, "body_too_large")


async def test_a_body_of_256_kib_is_not_too_large(desk: Desk) -> None:
    api = await desk.new_api()
    body = b" " * (262_144 - 2) + b"{}"

    assert locs(await api.call("PATCH", PERSON + "?a=1", body)) == {
        ("query", "a"): "extra_forbidden"
    }


async def test_each_check_comes_in_its_place(desk: Desk) -> None:
    wrong_in_all = {"Content-Type": "text/plain", "Idempotency-Key": "é"}
    partner = await desk.key()
    limited = await desk.key(per_minute=1, family=Family.CUSTOMER)
    other_family = await desk.key(family=Family.CUSTOMER, scopes=frozenset())
    no_scope = await desk.key(scopes=frozenset())

    async def post(key: Any, body: bytes = b"\xff", **headers: str) -> RawAnswer:
        sent = {"Content_Type": "text/plain", "Idempotency_Key": "\xe9", **headers}
        return await desk.raw(signed_request(key, "POST", CUSTOMERS, body, **sent))

    unsigned = await desk.raw(
        raw_request("POST", CUSTOMERS, {**wrong_in_all, "Content-Length": "0"})
    )
    await post(limited)
    answers = [
        await desk.raw(raw_request("POST", CUSTOMERS, {"Content-Length": "300000"})),
        unsigned,
        await post(limited),
        await post(other_family),
        await post(no_scope),
        await post(partner),
        await post(partner, Content_Type="application/json"),
    ]
    invalid = await post(partner, b"{}", Content_Type="application/json")

    assert [verdict(answer) for answer in answers] == [
        (413, "body_too_large"),
        (401, "missing_credentials"),
        (429, "rate_limited"),
        (403, "wrong_route_family"),
        (403, "insufficient_scope"),
        (415, "unsupported_media_type"),
        (400, "malformed_json"),
    ]
    assert invalid.status == 422
    told = {tuple(error["loc"]) for error in json.loads(invalid.body)["detail"]}
    assert {("header", "Idempotency-Key"), ("body", "business")} <= told


async def test_a_missing_scope_is_named(desk: Desk) -> None:
    api = await desk.new_api(scopes=FAMILY_SCOPES[Family.PARTNER] - {Scope.ACCOUNTS_READ})

    refused = await api.get(ACCOUNT)

    assert verdict(refused) == (403, "insufficient_scope")
    assert refused.body["scope"] == "accounts:read"


async def test_a_partners_key_is_no_customers_key(desk: Desk) -> None:
    api = await desk.new_api()

    assert verdict(await api.get("/customer/accounts")) == (403, "wrong_route_family")


@pytest.mark.parametrize(
    "content_type",
    [
        "text/json",
        "application/json; charset=latin-1",
        "application/json; profile=x; charset=utf-16",
        "application/json; charset=",
        "application/j\xc5\xbfon",  # U+017F, which is an s without its case
        "application/jsonp",
        "application/json, a/b",
        "",
    ],
)
async def test_a_body_of_another_type_is_415(desk: Desk, content_type: str) -> None:
    request = signed_request(await desk.key(), "PATCH", PERSON, b"{}", Content_Type=content_type)

    assert verdict(await desk.raw(request)) == (415, "unsupported_media_type")


@pytest.mark.parametrize(
    "content_type",
    [
        "Application/JSON",
        'application/json ; charset="utf-8"',
        "application/json;charset=UTF8; profile=x",
        "application/json; profile=x",
        "application/json;",
    ],
)
async def test_parameters_of_json_are_ignored_but_for_another_charset(
    desk: Desk, content_type: str
) -> None:
    target = f"{PERSON}?a=1"
    request = signed_request(await desk.key(), "PATCH", target, b"{}", Content_Type=content_type)

    assert (await desk.raw(request)).status == 422


@pytest.mark.parametrize("encodings", [["gzip"], ["identity"], ["br"], ["", "gzip"]], ids=str)
async def test_a_body_with_a_content_encoding_is_415(desk: Desk, encodings: list[str]) -> None:
    signed = signed_headers(await desk.key(), "PATCH", PERSON, b"{}")
    headers = [*signed.items(), ("Content-Type", "application/json"), ("Content-Length", "2")]
    headers += [("Content-Encoding", encoding) for encoding in encodings]

    answer = await desk.raw(raw_request("PATCH", PERSON, headers, b"{}"))

    assert verdict(answer) == (415, "unsupported_media_type")


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(b'{"first_name":"A","first_name":"B"}', id="duplicate keys"),
        pytest.param(b'{"ownership_percentage":NaN}', id="NaN"),
        pytest.param(b'{"a":' * 33 + b"1" + b"}" * 33, id="depth 33"),
        pytest.param(b"[" * 100_000, id="very deep"),
        pytest.param(b'{"first_name":"\xff"}', id="not UTF-8"),
        pytest.param(rb'{"first_name":"\ud800"}', id="a lone surrogate"),
        pytest.param(b'{"ownership_percentage":1E400}', id="1E400"),
        pytest.param(b"", id="empty"),
        pytest.param(b" ", id="blank"),
        pytest.param(b"{", id="cut"),
    ],
)
async def test_a_body_that_is_not_exact_json_is_400(desk: Desk, body: bytes) -> None:
    request = signed_request(await desk.key(), "PATCH", PERSON, body)

    assert verdict(await desk.raw(request)) == (400, "malformed_json")


async def test_a_body_that_does_not_arrive_is_408(desk: Desk) -> None:
    headers = signed_headers(await desk.key(), "POST", CUSTOMERS, b"")

    answer = await desk.raw(
        raw_request("POST", CUSTOMERS, headers | {"Content-Length": "10"}, b"{")
    )

    assert verdict(answer) == (408, "request_timeout")


@pytest.mark.parametrize(
    "request_bytes",
    [
        pytest.param(b"GET / HTTX/1.1\r\n\r\n", id="another protocol"),
        pytest.param(raw_request("GET", ACCOUNT, {"X-Long": "x" * 9000}), id="a long header"),
        pytest.param(
            raw_request("GET", ACCOUNT, {"Transfer-Encoding": "chunked"}, b"zz\r\n"),
            id="a bad chunk",
        ),
        pytest.param(b"GET /\xff HTTP/1.1\r\nHost: g\r\n\r\n", id="a raw byte in the path"),
    ],
)
async def test_what_no_parser_takes_is_a_plain_400(desk: Desk, request_bytes: bytes) -> None:
    assert (await desk.raw(request_bytes)).status == 400


async def test_a_query_takes_no_body_and_an_empty_one_of_any_type(desk: Desk) -> None:
    key = await desk.key()
    empty = await desk.raw(signed_request(key, "GET", f"{ACCOUNT}?a=1", b"", Content_Type="a/b"))
    full = await desk.raw(signed_request(key, "GET", ACCOUNT, b"{}"))

    assert empty.status == 422
    assert verdict(full) == (400, "malformed_json")


async def test_everything_wrong_in_query_header_and_body_is_told_at_once(desk: Desk) -> None:
    api = await desk.new_api()
    body = people.application(
        business=people.business(ein="00-1", fromation_state="DE"),
        persons=[people.person(controller=False, ownership_percentage=100.5)],
        external_bank_account=people.bank_account(routing_number="123456789"),
    )

    answer = await api.call("POST", f"{CUSTOMERS}?dry_run=1", body, idempotency_key="x" * 256)

    assert locs(answer) == {
        ("header", "Idempotency-Key"): "value_error",
        ("query", "dry_run"): "extra_forbidden",
        ("body", "business", "ein"): "value_error",
        ("body", "business", "fromation_state"): "extra_forbidden",
        ("body", "persons", 0, "ownership_percentage"): "less_than_equal",
        ("body", "persons"): "value_error",
        ("body", "external_bank_account", "routing_number"): "value_error",
    }


async def test_a_validation_error_shows_scalars_and_nothing_sensitive(desk: Desk) -> None:
    api = await desk.new_api()
    sent = {
        "tin": "canary-1",
        "date_of_birth": "canary-2",
        "taxpayer": "canary-3",
        "home_address": ["canary-4"],
        "ownership_percentage": 100.5,
        "controller": "yes",
    }

    answer = await api.patch(PERSON, sent)

    assert b"canary" not in answer.raw
    inputs = {error["loc"][1]: error.get("input") for error in answer.body["detail"]}
    assert inputs == dict.fromkeys(sent) | {
        "ownership_percentage": Decimal("100.5"),
        "controller": "yes",
    }
    assert all({"loc", "msg", "type"} <= set(error) for error in answer.body["detail"])


async def test_unknown_and_repeated_query_parameters_are_422(desk: Desk) -> None:
    api = await desk.new_api()

    answer = await api.get(f"{CUSTOMERS}?limit=0&page=1&page=1&sort=%F0%9F%98%80")

    assert locs(answer) == {
        ("query", "limit"): "greater_than_equal",
        ("query", "page"): "value_error",
        ("query", "sort"): "extra_forbidden",
    }


@pytest.mark.parametrize("keys", [["x" * 256], ["\xe9"], ["one", "two"], ["one", "one"]])
async def test_a_malformed_idempotency_key_is_422(desk: Desk, keys: list[str]) -> None:
    key = await desk.key()
    headers = list(signed_headers(key, "PATCH", PERSON, b"{}").items())
    headers += [("Content-Type", "application/json"), ("Content-Length", "2")]
    headers += [("Idempotency-Key", sent) for sent in keys]

    answer = await desk.raw(raw_request("PATCH", PERSON, headers, b"{}"))

    assert answer.status == 422
    assert json.loads(answer.body)["detail"][0]["loc"] == ["header", "Idempotency-Key"]


@pytest.mark.parametrize("account", ["%00", "a%2Fb", "..%2f", "%E2%82%AC", "x" * 129])
async def test_an_id_that_cannot_be_is_not_found(desk: Desk, account: str) -> None:
    api = await desk.new_api()

    assert verdict(await api.get(f"/partner/reseller/accounts/{account}")) == (404, "not_found")


async def test_a_tax_number_in_the_place_of_an_id_goes_no_further_than_the_gateway(
    desk: Desk,
) -> None:
    """No other service runs here: what is sent to one is 503 or 504."""
    api = await desk.new_api()
    person, business = (f"{CUSTOMERS}/{kind}/534567691" for kind in ("person", "business"))
    change = {"business": {"dba": "Acme"}}

    answers = [
        await api.call("PATCH", person, {}),
        await api.call("PATCH", business, change),
        await api.get(f"{CUSTOMERS}/534567691"),
        await api.get(f"{CUSTOMERS}/534567691/wire-policy"),
        await api.call("PUT", f"{CUSTOMERS}/534567691/wire-policy", {}),
    ]

    assert [verdict(answer) for answer in answers] == [(404, "not_found")] * 5
    assert {answer.body["detail"] for answer in answers} == {NotFound().detail}
    assert (await api.call("PATCH", business, {"business": {"ein": "1"}})).status == 422
    assert (await api.call("PATCH", person, {}, idempotency_key="x" * 256)).status == 422


async def test_every_response_carries_the_callers_request_id_or_a_new_one(desk: Desk) -> None:
    api = await desk.new_api()
    sent = ["my-id/1~", "x" * 128, "x" * 129, "two words"]

    kept = [(await api.get(f"{ACCOUNT}?a=1", **{"X-Request-Id": name})).headers for name in sent]
    problem = await desk.api().send("GET", "/nothing", b"", {"X-Request-Id": "my-id"})
    made = [headers["X-Request-Id"] for headers in kept[2:]]

    assert [headers["X-Request-Id"] for headers in kept[:2]] == sent[:2]
    assert {uuid.UUID(name).version for name in made} == {7}
    assert problem.body["request_id"] == problem.headers["X-Request-Id"] == "my-id"


async def test_a_problem_has_the_members_of_rfc_9457_and_a_code(desk: Desk) -> None:
    api = await desk.new_api()
    before = int(time.time())
    answer = await api.get("/customer/accounts")
    after = time.time()

    assert set(answer.body) == PROBLEM_MEMBERS
    assert answer.headers["Content-Type"].startswith("application/problem+json")
    assert (answer.body["status"], answer.body["title"]) == (403, "Forbidden")
    # The server makes the header once a second.
    assert before - 1 <= parsedate_to_datetime(answer.headers["Date"]).timestamp() <= after
    assert re.fullmatch(r"urn:bankside:error:\w+", answer.body["type"])


async def test_a_header_that_is_no_text_harms_neither_its_request_nor_others(desk: Desk) -> None:
    async def balance(_p: Principal, command: GetBalance, _deadline: float) -> Result:
        return Result(a_balance(command.account_id, Decimal(1)))

    key = await desk.key()
    target = "/partner/reseller/accounts/balance/acct_1"
    odd = [{"traceparent": "\xff\xfe"}, {"traceparent": "00-" + "a" * 32 + "-" + "b" * 16 + "-01"}]
    async with answering(desk.environment, "ledger_read", {ledger_read.GET_BALANCE.name: balance}):
        answers = await asyncio.gather(
            *(desk.raw(signed_request(key, "GET", target, b"", **odd[n % 2])) for n in range(40))
        )

    assert {answer.status for answer in answers} == {200}
