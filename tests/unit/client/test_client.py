"""The typed client, over real HTTP."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import UTC, date, datetime
from decimal import Decimal
from uuid import uuid4

import aiohttp
import pytest
from aiohttp import web
from pydantic import ValidationError

from libs.backoff import Backoff
from libs.client import client as client_module
from libs.client.client import Call, Client, request_of
from libs.client.transport import NoAnswer, Transport
from libs.client.webhooks import PairCall, Webhooks
from libs.contracts import errors
from libs.contracts import onboarding_operations as onboarding
from libs.contracts.accounts import GetBalance
from libs.contracts.customers import CustomerStatus, ListCustomers, UpdatePerson
from libs.contracts.deposit_locations import ListDepositLocations
from libs.contracts.operating import keys, operators, webhooks, wires
from libs.contracts.operating.commands import RETRY_COMMAND, DecideOnCommandOf
from libs.contracts.settlement import ListSettlementCalculations
from libs.contracts.table import PUBLIC_OPERATIONS
from libs.contracts.wires import WireReason, WireState, WireStep
from tests.unit.client.answering import DROP, KEY, Gateway, gateway, problem, success

BALANCE = {
    "account_id": "acc_1",
    "account_number": "000000000001",
    "available_balance": {"amount": Decimal("1234567890123456.78"), "currency": "USD"},
    "held_balance": {"amount": Decimal("0.10"), "currency": "USD"},
    "total_balance": {"amount": Decimal("1234567890123456.88"), "currency": "USD"},
    "system_timestamp": "2026-01-31T12:00:00.123456Z",
}
UPDATE = UpdatePerson.model_validate({"person_id": "p 1", "middle_name": None})


@pytest.fixture(autouse=True)
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client_module, "RETRIES", Backoff(0.001, 30.0))


@asynccontextmanager
async def client_of(server: Gateway) -> AsyncIterator[Client]:
    async with aiohttp.ClientSession() as session:
        yield Client(Transport(server.base_url, KEY, session), attempts=3)


def test_every_operation_for_callers_is_a_method() -> None:
    methods = {
        name: member.operation for name, member in vars(Client).items() if isinstance(member, Call)
    }

    pairs = {
        name: member.pair for name, member in vars(Webhooks).items() if isinstance(member, PairCall)
    }

    rows = [*methods.values(), *(row for pair in pairs.values() for row in pair)]
    assert len(rows) == len(set(rows))
    without = {row.name for row in PUBLIC_OPERATIONS} - {row.name for row in rows}
    assert not without, "each is a line of Client, or of Webhooks where both families have it"
    assert set(rows) == set(PUBLIC_OPERATIONS)
    assert all(row.name.endswith(f".{name}") for name, row in methods.items())
    for name, pair in pairs.items():
        for row in pair:
            assert row.name.replace(f"_{row.family}_", "_").endswith(f".{name}")


async def test_a_reply_is_a_model_with_every_digit() -> None:
    newer = BALANCE | {"a_field_of_a_newer_gateway": 1}
    async with (
        gateway(success(newer, headers={"X-Request-Id": "r-1"})) as server,
        client_of(server) as client,
    ):
        answer = await client.get_balance(GetBalance(account_id="acc_1"))

    assert answer.data.available_balance.amount == Decimal("1234567890123456.78")
    assert answer.data.system_timestamp == datetime(2026, 1, 31, 12, 0, 0, 123456, UTC)
    assert answer.request_id == "r-1"
    assert not answer.replayed
    assert server.received[0].signed
    assert server.received[0].target == "/partner/reseller/accounts/balance/acc_1"


async def test_filters_are_in_the_query_and_pagination_in_the_answer() -> None:
    page = success([], pagination={"limit": 5, "total": 0, "page": 2})
    async with gateway(page) as server, client_of(server) as client:
        answer = await client.list_customers(
            ListCustomers(page=2, limit=5, status=CustomerStatus.DENIED)
        )

    assert server.received[0].target.endswith("/customers?page=2&limit=5&status=denied")
    assert answer.pagination is not None
    assert answer.pagination.model_dump() == {"limit": 5, "total": 0, "page": 2}


async def test_headers_and_days_of_a_read_and_the_day_of_its_answer() -> None:
    locations = success(
        [], pagination={"limit": 50, "total": 0, "offset": 0}, as_of_date="2026-03-02"
    )
    async with gateway(success(None), locations) as server, client_of(server) as client:
        calculations = await client.list_settlement_calculations(
            ListSettlementCalculations(
                account_id="acc_1",
                token_type="rrc",
                settlement_date=date(2026, 3, 2),
                source="rail a",
            )
        )
        load = await client.list_deposit_locations(ListDepositLocations(account_id="acc_1"))

    assert calculations.data is None
    assert server.received[0].target.endswith("?token_type=rrc&settlement_date=2026-03-02")
    assert server.received[0].headers["source"] == "rail a"
    assert (load.data, load.as_of_date) == ([], date(2026, 3, 2))


async def test_an_update_holds_what_was_set_and_nothing_else() -> None:
    async with gateway(success(None)) as server, client_of(server) as client:
        answer = await client.update_person(UPDATE, idempotency_key="mine")

    received = server.received[0]
    assert (received.method, received.body) == ("PATCH", b'{"middle_name":null}')
    assert received.target == "/partner/reseller/customers/person/p%201"
    assert received.headers["Idempotency-Key"] == "mine"
    assert received.headers["Content-Type"] == "application/json"
    assert received.signed
    assert answer.data is None


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
    problem(500, "internal_error"),
    lambda: web.Response(text="<html>"),
]


@pytest.mark.parametrize(
    "refusal", REFUSALS_OF_ONE_SEND, ids=["401", "403", "408", "413", "500", "200"]
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


async def test_an_operator_reads_answers_of_the_release_before() -> None:
    at = "2026-01-31T12:00:00Z"
    key: dict[str, object] = {
        "subscription_key": "sub_1",
        "tenant": "acme",
        "family": "partner",
        "customer_id": None,
        "scopes": [],
        "allowed_networks": [],
        **dict.fromkeys(("reads_per_minute", "writes_per_minute", "wires_per_minute"), 1),
        "created_at": at,
        **dict.fromkeys(("expires_at", "revoked_at", "last_used_at")),
    }
    operator: dict[str, object] = {
        "name": "ada",
        "role": "viewer",
        "subscription_keys": [],
        "created_at": at,
        "revoked_at": None,
        "last_used_at": None,
    }
    recovered = {"scheduled": 3}
    answers = (success(data) for data in (key, {"items": [operator], "next": None}, recovered))
    async with gateway(*answers) as server, client_of(server) as client:
        shown = await client.call(keys.GET_KEY, keys.GetKey(subscription_key="sub_1"))
        listed = await client.call(operators.LIST_OPERATORS, operators.ListOperators())
        recovery = await client.call(
            webhooks.RECOVER,
            webhooks.OperatorRecover(
                subscription_id="s", since=datetime(2026, 1, 31, tzinfo=UTC), reason="restored"
            ),
        )

    assert shown.data.requires_idempotency_key is False
    assert [one.login for one in listed.data.items] == [None]
    assert (recovery.data.scheduled, recovery.data.next) == (3, None)


@pytest.mark.parametrize(
    ("told", "read"),
    [
        ({"reason": "AC04 closed"}, (None, "AC04 closed")),
        ({"reason": "sanctioned", "reason_detail": "list 7"}, (None, "sanctioned: list 7")),
        ({"reason": "returned", "reason_detail": "AC04"}, (WireReason.RETURNED, "AC04")),
        ({"reason": None}, (None, None)),
    ],
)
async def test_a_wire_of_a_release_with_other_reasons_is_read_with_its_words(
    told: dict[str, object], read: tuple[WireReason | None, str | None]
) -> None:
    at = "2026-01-31T12:00:00Z"
    wire = {
        "transaction_id": "t",
        "sending_account_id": "a",
        "external_account_id": "x",
        "amount": Decimal("1.50"),
        "note": "rent",
        "tenant": "acme",
        "customer_id": "c",
        "outcome_unknown": False,
        "state": "returned",
        "history": [{"state": "returned", "at": at, **told}],
        "created_at": at,
        "updated_at": at,
        "send": None,
        "request": None,
        "provider": None,
        "provider_error": None,
        **told,
    }
    async with gateway(success(wire)) as server, client_of(server) as client:
        answer = await client.call(wires.GET_WIRE, wires.GetOperatorWire(transaction_id="t"))

    found = answer.data
    assert (found.reason, found.reason_detail) == read
    assert [(step.reason, step.reason_detail) for step in found.history] == [read]


def test_a_service_names_no_reason_that_is_not_in_the_list() -> None:
    with pytest.raises(ValidationError, match="reason"):
        WireStep.model_validate(
            {"state": WireState.RETURNED, "at": datetime.now(UTC), "reason": "AC04 closed"}
        )


def test_an_internal_query_is_not_for_callers() -> None:
    internal = onboarding.FIND_CUSTOMER

    with pytest.raises(ValueError, match="not for callers"):
        request_of(internal, internal.command.model_validate({"customer_id": "c"}))
