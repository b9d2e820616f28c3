"""What the typed client sends and reads, over real HTTP."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal

import pytest
from pydantic import ValidationError

from libs.backoff import Backoff
from libs.client import client as client_module
from libs.client.client import Call, Client, request_of
from libs.client.webhooks import PairCall, Webhooks
from libs.contracts import onboarding_operations as onboarding
from libs.contracts.accounts import GetBalance
from libs.contracts.customers import CustomerStatus, ListCustomers
from libs.contracts.deposit_locations import ListDepositLocations
from libs.contracts.operating import keys, operators, webhooks, wires
from libs.contracts.settlement import ListSettlementCalculations
from libs.contracts.table import PUBLIC_OPERATIONS
from libs.contracts.wires import WireReason, WireState, WireStep
from tests.unit.client.answering import gateway, success
from tests.unit.client.calling import BALANCE, UPDATE, client_of


@pytest.fixture(autouse=True)
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client_module, "RETRIES", Backoff(0.001, 30.0))


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
