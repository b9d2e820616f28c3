"""What a call came to: retries, refusals, and what is not known."""

from __future__ import annotations

from collections.abc import Callable
from uuid import uuid4

import aiohttp
import pytest
from aiohttp import web

from libs.backoff import Backoff
from libs.client import client as client_module
from libs.client.client import Client
from libs.client.transport import NoAnswer, Transport
from libs.contracts import errors
from libs.contracts.accounts import GetBalance
from libs.contracts.operating.commands import RETRY_COMMAND, DecideOnCommandOf
from tests.unit.client.answering import DROP, KEY, gateway, problem, success
from tests.unit.client.calling import UPDATE, client_of


@pytest.fixture(autouse=True)
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client_module, "RETRIES", Backoff(0.001, 30.0))


@pytest.mark.parametrize(
    "refusal",
    [
        problem(503, "unavailable"),
        problem(429, "rate_limited", headers={"Retry-After": "0"}),
        problem(409, "idempotency_in_progress", headers={"Retry-After": "0"}),
        problem(401, "nonce_reused"),
        DROP,
    ],
    ids=["503", "429", "409", "401", "dropped"],
)
async def test_a_retry_signs_anew_and_keeps_the_idempotency_key(refusal: object) -> None:
    async with gateway(refusal, success(None)) as server, client_of(server) as client:  # type: ignore[arg-type]
        await client.update_person(UPDATE)

    first, second = server.received
    assert first.headers["Idempotency-Key"] == second.headers["Idempotency-Key"]
    assert first.headers["X-API-NONCE"] != second.headers["X-API-NONCE"]
    assert second.signed


@pytest.mark.parametrize(
    ("status", "code"),
    [
        (400, "malformed_json"),
        (401, "invalid_signature"),
        (404, "not_found"),
        (409, "already_exists"),
        (500, "internal_error"),
        (502, "provider_error"),
        (504, "outcome_pending"),
    ],
)
async def test_an_error_is_raised_as_it_is_and_not_retried(status: int, code: str) -> None:
    async with gateway(problem(status, code, server_time=7)) as server, client_of(server) as client:
        with pytest.raises(errors.ERRORS[code]) as raised:
            await client.update_person(UPDATE)

    assert len(server.received) == 1
    assert raised.value.detail == "No."
    assert raised.value.extra == {"server_time": 7}


@pytest.mark.parametrize("kind", [errors.RateLimited, errors.Unavailable])
async def test_an_answer_with_an_unknown_code_is_retried_by_its_status(
    kind: type[errors.BanksideError],
) -> None:
    later = problem(kind.status, "a_code_of_a_later_release")
    async with gateway(later, success(None)) as server, client_of(server) as client:
        await client.update_person(UPDATE)
    async with gateway(later) as busy, client_of(busy) as client:
        with pytest.raises(kind):
            await client.update_person(UPDATE)

    assert (len(server.received), len(busy.received)) == (2, 3)


async def test_failed_validation_tells_all_errors() -> None:
    found = [{"loc": ["body", "tin"], "msg": "no", "type": "value_error"}]
    body = web.json_response
    async with (
        gateway(lambda: body({"detail": found}, status=422)) as server,
        client_of(server) as client,
    ):
        with pytest.raises(errors.Invalid) as raised:
            await client.update_person(UPDATE)

    assert raised.value.errors == found


@pytest.mark.parametrize(
    "found",
    [
        ["bad"],
        [{"msg": "no"}],
        [{"loc": "body", "msg": "no", "type": "t"}],
        [{"loc": [], "msg": 1}],
    ],
)
async def test_a_422_that_is_not_the_gateways_is_told_by_its_status(found: list[object]) -> None:
    body = web.json_response
    async with (
        gateway(lambda: body({"detail": found}, status=422)) as server,
        client_of(server) as client,
    ):
        with pytest.raises(errors.InternalError) as raised:
            await client.update_person(UPDATE)

    assert raised.value.detail.startswith("The answer is 422 ")


async def test_a_put_whose_connection_is_reset_is_not_sent_again_without_a_new_nonce() -> None:
    async with gateway(DROP) as server, aiohttp.ClientSession() as session:
        transport = Transport(server.base_url, KEY, session)
        with pytest.raises(NoAnswer):
            await transport.send("PUT", "/partner/reseller/customers")
        once = len(server.received)
        with pytest.raises(NoAnswer):
            await transport.send("GET", "/partner/reseller/customers")

    assert (once, len(server.received)) == (1, 2)


async def test_an_empty_idempotency_key_is_sent_as_it_is() -> None:
    async with gateway(success(None)) as server, client_of(server) as client:
        await client.update_person(UPDATE, idempotency_key="")

    assert server.received[0].headers["Idempotency-Key"] == "", "for the gateway to refuse"


async def test_attempts_are_bounded() -> None:
    async with gateway(problem(503, "unavailable")) as server, client_of(server) as client:
        with pytest.raises(errors.Unavailable):
            await client.get_balance(GetBalance(account_id="a"))

    assert len(server.received) == 3


@pytest.mark.parametrize("asked", ["3600", "Fri, 31 Dec 2100 23:59:59 GMT"])
async def test_a_pause_longer_than_our_patience_is_not_waited_for(asked: str) -> None:
    later = problem(429, "rate_limited", headers={"Retry-After": asked})
    async with gateway(later) as server, client_of(server) as client:
        with pytest.raises(errors.RateLimited) as raised:
            await client.get_balance(GetBalance(account_id="a"))

    assert len(server.received) == 1
    assert raised.value.headers == {"Retry-After": asked}


async def test_a_write_that_may_have_been_taken_is_pending_whatever_comes_after() -> None:
    async with gateway(DROP, problem(503, "unavailable")) as server, client_of(server) as client:
        with pytest.raises(errors.OutcomePending):
            await client.update_person(UPDATE)

    assert len(server.received) == 3


@pytest.mark.parametrize(
    "after",
    [problem(401, "nonce_reused"), problem(403, "address_not_allowed")],
    ids=["401", "403"],
)
async def test_a_fresh_nonce_that_was_used_leaves_the_outcome_of_a_write_unknown(
    after: Callable[[], web.Response],
) -> None:
    async with gateway(problem(401, "nonce_reused"), after) as server, client_of(server) as client:
        with pytest.raises(errors.OutcomePending):
            await client.update_person(UPDATE)

    assert len({request.headers["Idempotency-Key"] for request in server.received}) == 1


async def test_a_write_without_an_idempotency_key_is_not_sent_again_after_a_used_nonce() -> None:
    async with gateway(problem(401, "nonce_reused")) as server, client_of(server) as client:
        with pytest.raises(errors.OutcomePending):
            await client.call(
                RETRY_COMMAND,
                DecideOnCommandOf(service="payments", command_id=uuid4(), reason="Mended."),
            )

    assert len(server.received) == 1


REFUSALS_OF_ONE_SEND = [
    problem(401, "unknown_subscription_key"),
    problem(403, "address_not_allowed"),
    problem(408, "request_timeout"),
    lambda: web.Response(status=413, text="<html>"),
    lambda: web.json_response(
        {"detail": [{"loc": ["body", "tin"], "msg": "no", "type": "x"}]}, status=422
    ),
    problem(500, "internal_error"),
    lambda: web.Response(text="<html>"),
]


@pytest.mark.parametrize(
    "refusal", REFUSALS_OF_ONE_SEND, ids=["401", "403", "408", "413", "422", "500", "200"]
)
async def test_a_retry_that_is_refused_by_itself_leaves_the_outcome_of_a_write_unknown(
    refusal: Callable[[], web.Response],
) -> None:
    async with gateway(DROP, refusal) as server, client_of(server) as client:
        with pytest.raises(errors.OutcomePending):
            await client.update_person(UPDATE)

    assert len(server.received) == 2


async def test_a_refusal_is_told_as_it_is_where_nothing_was_sent_before_and_of_a_read() -> None:
    refusal = problem(401, "unknown_subscription_key")
    async with gateway(refusal) as server, client_of(server) as client:
        with pytest.raises(errors.UnknownSubscriptionKey):
            await client.update_person(UPDATE)
    async with gateway(DROP, refusal) as server, client_of(server) as client:
        with pytest.raises(errors.UnknownSubscriptionKey):
            await client.get_balance(GetBalance(account_id="a"))


async def test_what_a_service_refused_is_told_also_after_a_send_without_an_answer() -> None:
    refused = problem(409, "invalid_state")
    async with gateway(DROP, refused) as server, client_of(server) as client:
        with pytest.raises(errors.InvalidState):
            await client.update_person(UPDATE)


def of_proxy(
    body: bytes = b"<html>", content_type: str = "text/html", status: int = 503
) -> Callable[[], web.Response]:
    return lambda: web.Response(status=status, body=body, content_type=content_type)


@pytest.mark.parametrize(
    "answer",
    [
        of_proxy(),
        of_proxy(b""),
        of_proxy(b'{"code": "unavailable"}', "application/json"),
        of_proxy(b'{"detail": "no code"}', "application/problem+json"),
        of_proxy(status=502),
        of_proxy(status=504),
        of_proxy(status=500),
        of_proxy(status=524),
    ],
)
async def test_an_answer_of_a_proxy_leaves_the_outcome_of_a_write_unknown(
    answer: Callable[[], web.Response],
) -> None:
    async with gateway(answer) as server, client_of(server) as client:
        with pytest.raises(errors.OutcomePending):
            await client.update_person(UPDATE)

    keys = {received.headers["Idempotency-Key"] for received in server.received}
    assert (len(server.received), len(keys)) == (3, 1)


async def test_a_503_of_the_gateway_after_one_of_a_proxy_does_not_say_that_nothing_was_started() -> (
    None
):
    async with (
        gateway(of_proxy(), problem(503, "unavailable")) as server,
        client_of(server) as client,
    ):
        with pytest.raises(errors.OutcomePending):
            await client.update_person(UPDATE)


async def test_a_write_after_a_503_of_a_proxy_is_answered_by_the_retry_under_its_key() -> None:
    async with gateway(of_proxy(), success(None)) as server, client_of(server) as client:
        await client.update_person(UPDATE)

    assert len(server.received) == 2


async def test_a_write_without_an_idempotency_key_is_not_sent_again_after_a_503_of_a_proxy() -> (
    None
):
    async with (
        gateway(of_proxy()) as server,
        aiohttp.ClientSession() as session,
    ):
        operator = Client(Transport(server.base_url, KEY, session), attempts=3)
        with pytest.raises(errors.OutcomePending):
            await operator.call(
                RETRY_COMMAND,
                DecideOnCommandOf(service="payments", command_id=uuid4(), reason="Mended."),
            )

    assert len(server.received) == 1


async def test_a_read_after_a_503_of_a_proxy_has_no_answer() -> None:
    async with gateway(of_proxy()) as server, client_of(server) as client:
        with pytest.raises(errors.ProviderTimeout):
            await client.get_balance(GetBalance(account_id="a"))


async def test_a_read_without_an_answer_timed_out() -> None:
    async with gateway(DROP) as server, client_of(server) as client:
        with pytest.raises(errors.ProviderTimeout):
            await client.get_balance(GetBalance(account_id="a"))


@pytest.mark.parametrize(
    ("refusal", "expected"),
    [
        (problem(429, "rate_limited"), errors.RateLimited),
        (problem(503, "unavailable"), errors.Unavailable),
    ],
    ids=["429", "503"],
)
async def test_a_read_whose_retries_fail_ends_with_the_reason_of_the_last_one(
    refusal: Callable[[], web.Response], expected: type[errors.BanksideError]
) -> None:
    async with gateway(DROP, refusal) as server, client_of(server) as client:
        with pytest.raises(expected):
            await client.get_balance(GetBalance(account_id="a"))


async def test_a_gateway_that_is_not_there_is_unavailable() -> None:
    async with gateway(DROP) as server:
        pass

    async with client_of(server) as client:
        with pytest.raises(errors.Unavailable):
            await client.update_person(UPDATE)


@pytest.mark.parametrize(
    ("status", "raised"),
    [(429, errors.RateLimited), (302, errors.InternalError)],
)
async def test_an_answer_of_something_in_between_is_an_error_too(
    status: int, raised: type[errors.BanksideError]
) -> None:
    page = web.Response
    async with (
        gateway(lambda: page(status=status, text="<html>")) as server,
        client_of(server) as client,
    ):
        with pytest.raises(raised):
            await client.update_person(UPDATE)


@pytest.mark.parametrize("body", [b"", b"[]", b'{"message": "x", "data": {"account_id": 1}}'])
async def test_a_success_that_cannot_be_read_is_an_error(body: bytes) -> None:
    response = web.Response
    async with gateway(lambda: response(body=body)) as server, client_of(server) as client:
        with pytest.raises(errors.InternalError, match="internal_error"):
            await client.get_balance(GetBalance(account_id="a"))


@pytest.mark.parametrize("status", [200, 202])
async def test_a_success_of_a_write_that_cannot_be_read_leaves_its_outcome_unknown(
    status: int,
) -> None:
    page = web.Response
    async with (
        gateway(lambda: page(status=status, text="<html>")) as server,
        client_of(server) as client,
    ):
        with pytest.raises(errors.OutcomePending):
            await client.update_person(UPDATE)

    assert len(server.received) == 1
