"""What the Python client sends again, when, and under which key."""

from __future__ import annotations

from decimal import Decimal

import pytest
from aiohttp import web

from bankside_client import BanksideError, RateLimited, Unavailable
from tests.unit.client.answering import DROP, gateway, problem, success
from tests.unit.python_client.calling import SENT, UNAVAILABLE, WIRE, calling, failure


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


async def test_a_pause_is_the_one_that_the_answer_asks_for(kind: str) -> None:
    late = problem(429, "rate_limited", headers={"Retry-After": "3600"})
    async with gateway(late, success(WIRE)) as server:
        error = await failure(kind, server, "send_wire", **SENT)

    assert (error.code, error.status, len(server.received)) == ("rate_limited", 429, 1)


async def test_a_write_whose_fresh_nonce_was_used_is_sent_again_under_its_key(kind: str) -> None:
    reused = problem(401, "nonce_reused")
    async with gateway(reused, success(WIRE)) as server, calling(kind, server.base_url) as call:
        answer = await call("send_wire", **SENT)

    assert answer.data.transaction_id == "t1"
    assert len({request.headers["Idempotency-Key"] for request in server.received}) == 1
    assert len({request.headers["X-API-NONCE"] for request in server.received}) == 2


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
