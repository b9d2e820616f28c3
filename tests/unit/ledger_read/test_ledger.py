from __future__ import annotations

from collections.abc import Iterator
from datetime import date
from decimal import Decimal
from typing import Any

import pytest
from structlog.testing import capture_logs

from libs.contracts import ledger_read_operations as operations
from libs.contracts.errors import NotFound, ProviderError
from libs.contracts.operation import Operation
from libs.contracts.principal import Family, Principal
from tests.unit.ledger_read.answers import (
    Row,
    ach_request,
    calculation,
    cursored,
    location,
    numbered,
    statement,
    transaction,
)
from tests.unit.ledger_read.conftest import Service
from tests.unit.ledger_read.fakes import CUSTOMER, PARTNER

TRANSACTIONS, LOCATIONS = "/accounts/a_1/transactions", "/accounts/a_1/deposit-locations"
ACH, STATEMENTS = "/accounts/a_1/ach", "/accounts/a_1/statements"
SETTLEMENT = "/accounts/a_1/settlement-calculations"
SETTLED: dict[str, Any] = {"token_type": "rrc", "settlement_date": date(2026, 2, 1)}
REQUESTS: list[tuple[Operation, dict[str, Any]]] = [
    (operations.LIST_TRANSACTIONS, {}),
    (operations.LIST_DEPOSIT_LOCATIONS, {}),
    (operations.LIST_ACH_REQUESTS, {}),
    (operations.LIST_STATEMENTS, {}),
    (operations.LIST_SETTLEMENT_CALCULATIONS, SETTLED),
]


@pytest.fixture(autouse=True)
def owned(service: Service) -> None:
    service.onboarding.accounts = {"a_1": ("t_1", "c_1")}


async def test_a_transaction_is_read_in_its_read_shape(service: Service) -> None:
    debit = transaction(1, direction="debit", amount="1234567890123456.70", extra=1)
    service.bank.lists[TRANSACTIONS] = numbered("transactions", [debit])

    payload = await service.payload(operations.LIST_TRANSACTIONS, CUSTOMER, account_id="a_1")

    assert payload == {
        "data": [
            {
                "transaction_id": "txn_000001",
                "account_number": "123456789012",
                "account_group": "deposit",
                "type": "deposit",
                "settled_at": "2026-03-01T12:00:00.000001Z",
                "counterparty_name": "Payer",
                "counterparty_id": None,
                "amount": Decimal("1234567890123456.70"),
                "debit_credit_flag": True,
                "tx_uuid": "0197a1c2-5a3e-7c11-9d54-000000000001",
            }
        ],
        "pagination": {"limit": 50, "total": 1, "page": 1},
    }
    assert service.bank.seen == [f"{TRANSACTIONS}?page=1&limit=50"]


async def test_deposit_locations_come_with_the_day_of_their_load(service: Service) -> None:
    rows = [location(number) for number in range(1, 8)]
    service.bank.lists[LOCATIONS] = numbered("locations", rows, as_of_date="2026-03-02")

    payload = await service.payload(
        operations.LIST_DEPOSIT_LOCATIONS, CUSTOMER, account_id="a_1", page=3, limit=3
    )

    assert payload == {
        "data": [
            {
                "location_id": 7,
                "name": "Bank 7",
                "city_and_state": "Albany, NY",
                "balance": Decimal("250000.00"),
            }
        ],
        "pagination": {"limit": 3, "total": 7, "offset": 6},
        "as_of_date": date(2026, 3, 2),
    }


async def test_before_any_load_there_is_no_day(service: Service) -> None:
    service.bank.lists[LOCATIONS] = numbered("locations", [], as_of_date=None)

    payload = await service.payload(
        operations.LIST_DEPOSIT_LOCATIONS,
        CUSTOMER,
        account_id="a_1",
        load_date=date(2026, 3, 1),
    )

    assert payload["data"] == []
    assert payload["as_of_date"] is None
    assert service.bank.seen == [f"{LOCATIONS}?load_date=2026-03-01&page=1&limit=50"]


async def test_pages_of_a_load_stay_with_it_when_a_newer_one_comes(service: Service) -> None:
    rows = [location(number) for number in range(1, 8)]
    old = numbered("locations", rows, lambda _: 3, as_of_date="2026-03-02")
    new = numbered("locations", rows[:1], lambda _: 3, as_of_date="2026-03-03")
    service.bank.lists[LOCATIONS] = lambda query: (
        old if len(service.bank.seen) == 1 or query.get("load_date") == "2026-03-02" else new
    )(query)

    payload = await service.payload(operations.LIST_DEPOSIT_LOCATIONS, CUSTOMER, account_id="a_1")

    assert [row["location_id"] for row in payload["data"]] == [1, 2, 3, 4, 5, 6, 7]
    assert payload["as_of_date"] == date(2026, 3, 2)


async def test_an_ach_request_is_read_in_its_read_shape(service: Service) -> None:
    service.bank.lists[ACH] = cursored("ach_requests", [ach_request(1)])

    [found] = await service.ask(operations.LIST_ACH_REQUESTS, PARTNER, account_id="a_1")

    assert found == ach_request(1)


async def test_a_statement_is_read_with_its_url_unchanged(service: Service) -> None:
    service.bank.lists[STATEMENTS] = cursored("statements", [statement()])

    [found] = await service.ask(operations.LIST_STATEMENTS, PARTNER, account_id="a_1")

    assert found == {
        "statement_id": "0197a1c2-5a3e-7c11-9d54-3f2b1c0e8a77",
        "start_date": date(2026, 2, 1),
        "end_date": date(2026, 2, 28),
        "year": 2026,
        "month": 2,
        "generated_at": "2026-03-01T05:00:00.000001Z",
        "formats": {
            "format": "pdf",
            "url": "https://bank.example/s.pdf?expires=1&signature=a%2Fb",
            "url_expires_at": "2026-03-01T12:15:00.000000Z",
        },
    }


async def test_a_list_without_pages_is_read_to_its_end(service: Service) -> None:
    rows = [ach_request(number) for number in range(250)]
    service.bank.lists[ACH] = cursored("ach_requests", rows)

    found = await service.ask(operations.LIST_ACH_REQUESTS, PARTNER, account_id="a_1")

    assert found == rows
    assert len(service.bank.seen) == 3


async def test_a_list_that_is_longer_than_ten_thousand_is_refused_not_cut(
    service: Service,
) -> None:
    rows = [ach_request(number) for number in range(10_001)]
    service.bank.lists[ACH] = cursored("ach_requests", rows[:10_000], most=5_000)
    whole = await service.ask(operations.LIST_ACH_REQUESTS, PARTNER, account_id="a_1")
    service.bank.lists[ACH] = cursored("ach_requests", rows, most=5_000)

    with pytest.raises(ProviderError) as refused:
        await service.ask(operations.LIST_ACH_REQUESTS, PARTNER, account_id="a_1")

    assert len(whole) == 10_000
    assert refused.value.detail == "The list is longer than 10,000 rows."


async def test_settlement_is_null_without_a_reserve_account_and_a_list_with_one(
    service: Service,
) -> None:
    nothing = cursored("calculations", [], reserve_account_number=None)
    service.bank.lists[SETTLEMENT] = nothing
    without = await service.ask(
        operations.LIST_SETTLEMENT_CALCULATIONS, CUSTOMER, account_id="a_1", **SETTLED
    )
    empty = cursored("calculations", [], reserve_account_number="900000000001")
    service.bank.lists[SETTLEMENT] = empty
    with_one = await service.ask(
        operations.LIST_SETTLEMENT_CALCULATIONS, CUSTOMER, account_id="a_1", **SETTLED
    )

    assert (without, with_one) == (None, [])
    assert service.bank.seen[0] == f"{SETTLEMENT}?from=2026-02-01&limit=200"


@pytest.mark.parametrize("source", [None, "", "rail:7, a b"])
async def test_the_source_of_a_settlement_is_handed_on(
    service: Service, source: str | None
) -> None:
    rows = [calculation(amount="+.50", ach_file="PPD"), calculation()]
    answer = cursored("calculations", rows, most=1, reserve_account_number="900000000001")
    service.bank.lists[SETTLEMENT] = answer

    found = await service.ask(
        operations.LIST_SETTLEMENT_CALCULATIONS,
        CUSTOMER,
        account_id="a_1",
        source=source,
        **SETTLED,
    )

    assert found[0] == {
        "reserve_account_number": "900000000001",
        "amount": "+.50",
        "ach_file": "PPD",
        "created_at": "2026-03-01T05:00:00.000001Z",
        "settlement_date": date(2026, 2, 27),
    }
    assert len(found) == 2
    assert [headers.get("Source") for headers in service.bank.headers] == [source or None] * 2


@pytest.mark.parametrize(("operation", "more"), REQUESTS)
@pytest.mark.parametrize(
    "principal",
    [
        Principal("t_2", "Partner Two", Family.PARTNER, "sub_9"),
        Principal("t_1", "Partner One", Family.CUSTOMER, "sub_8", "c_2"),
    ],
)
async def test_anothers_ledger_is_not_found_and_the_provider_not_asked(
    service: Service, operation: Operation, more: dict[str, Any], principal: Principal
) -> None:
    with pytest.raises(NotFound):
        await service.ask(operation, principal, account_id="a_1", **more)

    assert service.bank.seen == []


@pytest.mark.parametrize(("operation", "more"), REQUESTS)
async def test_an_account_that_the_provider_lost_is_an_error(
    service: Service, operation: Operation, more: dict[str, Any]
) -> None:
    with pytest.raises(ProviderError):
        await service.ask(operation, PARTNER, account_id="a_1", **more)


def one(name: str, row: Row, **more: Any) -> Row:
    paging = {"next_cursor": None, "total": 1, "page": 1, "limit": 50}
    return {"account_id": "a_1", name: [row], **paging, **more}


def broken() -> Iterator[tuple[Operation, str, Any]]:
    changes: list[Row] = [
        {"amount": "-4711"},
        {"amount": "4711 dollars"},
        {"direction": "4711"},
        {"type": "gift4711"},
        {"settled_at": "2026-03-01T12:00:00"},
        {"posting_id": "4711"},
        {"account_id": "a_4711"},
        {"counterparty_name": 4711},
    ]
    for change in changes:
        found = one("transactions", transaction(1, **change))
        yield operations.LIST_TRANSACTIONS, TRANSACTIONS, found
    for change in ({"total": 4711}, {"page": 4711}, {"limit": 0}, {"transactions": "4711"}):
        found = one("transactions", transaction(1)) | change
        yield operations.LIST_TRANSACTIONS, TRANSACTIONS, found
    changes = [
        {"amount": "4711"},
        {"status": "4711"},
        {"originating_account_id": "a_4711"},
        {"return_code": 4711},
    ]
    for change in changes:
        yield operations.LIST_ACH_REQUESTS, ACH, one("ach_requests", ach_request(1, **change))
    changes = [
        {"statement_id": "4711"},
        {"start_date": 4711},
        {"url": None},
        {"month": 4711},
        {"account_id": "a_4711"},
    ]
    for change in changes:
        yield operations.LIST_STATEMENTS, STATEMENTS, one("statements", statement(**change))
    for change in ({"balance": "4711$"}, {"location_id": "4711"}, {"state": None}):
        found = one("locations", location(1, **change), as_of_date="2026-03-02")
        yield operations.LIST_DEPOSIT_LOCATIONS, LOCATIONS, found
    for day in (None, "4711"):
        found = one("locations", location(1), as_of_date=day)
        yield operations.LIST_DEPOSIT_LOCATIONS, LOCATIONS, found
    for change in ({"amount": "4711,00"}, {"amount": "-."}, {"settlement_date": "4711"}):
        found = one("calculations", calculation(**change), reserve_account_number="9")
        yield operations.LIST_SETTLEMENT_CALCULATIONS, SETTLEMENT, found
    strange = one("locations", location(1), account_id="a_4711", as_of_date="2026-03-02")
    yield operations.LIST_DEPOSIT_LOCATIONS, LOCATIONS, strange
    strange = one("calculations", calculation(), account_id="a_4711", reserve_account_number="9")
    yield operations.LIST_SETTLEMENT_CALCULATIONS, SETTLEMENT, strange
    without = one("calculations", calculation(), reserve_account_number=None)
    yield operations.LIST_SETTLEMENT_CALCULATIONS, SETTLEMENT, without


@pytest.mark.parametrize(("operation", "path", "answer"), list(broken()))
async def test_a_broken_answer_is_a_provider_error_logged_without_its_content(
    service: Service, operation: Operation, path: str, answer: Any
) -> None:
    service.bank.answers[path] = (200, answer)
    more = SETTLED if operation is operations.LIST_SETTLEMENT_CALCULATIONS else {}

    with capture_logs() as logs, pytest.raises(ProviderError):
        await service.ask(operation, PARTNER, account_id="a_1", **more)

    assert [entry["log_level"] for entry in logs] == ["error"]
    assert "4711" not in str(logs)


async def test_a_load_of_another_day_is_not_shown_for_the_one_asked_for(service: Service) -> None:
    answer = numbered("locations", [location(1)], as_of_date="2026-03-02")
    service.bank.lists[LOCATIONS] = answer

    with pytest.raises(ProviderError):
        await service.ask(
            operations.LIST_DEPOSIT_LOCATIONS,
            CUSTOMER,
            account_id="a_1",
            load_date=date(2026, 3, 1),
        )
