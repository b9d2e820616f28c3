"""What the Python client tells of answers, and of a write of which none came."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from bankside_client import Conflict, InvalidRequest, OutcomeUnknown, ServerError, Unavailable
from tests.support.certificates import Authority, behind_tls
from tests.unit.client.answering import DROP, Gateway, gateway, problem, success
from tests.unit.python_client.calling import SENT, UNAVAILABLE, WIRE, calling, failure, plain


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


async def test_what_a_newer_gateway_adds_and_an_older_one_lacks_is_taken(kind: str) -> None:
    policy = {"per_wire_limit": 10, "new_field": 1}
    async with gateway(success(policy)) as server, calling(kind, server.base_url) as call:
        answer = await call("get_own_wire_policy")

    assert type(answer.data.per_wire_limit) is Decimal
    assert answer.data.daily_limit is None
