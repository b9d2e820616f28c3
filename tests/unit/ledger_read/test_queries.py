from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest
from structlog.testing import capture_logs

from libs.contracts import ledger_read_operations as operations
from libs.contracts.errors import NotFound, ProviderError, ProviderTimeout, Unavailable
from libs.contracts.operation import Operation
from libs.contracts.principal import Family, Principal
from tests.unit.ledger_read.conftest import Service, account_answer
from tests.unit.ledger_read.fakes import CUSTOMER, PARTNER

BALANCE = {
    "account_id": "a_1",
    "account_number": "123456789012",
    "available": "1234567890123456.78",
    "held": "0.02",
    "total": "1234567890123456.80",
    "currency": "USD",
    "as_of": "2026-03-01T12:00:00.000001Z",
}
EXTERNAL = {
    "external_account_id": "e_1",
    "account_number": "987654321",
    "title": "Acme",
    "routing_number": "021000021",
    "institution_name": "Other Bank",
}
SINGLE = (operations.GET_ACCOUNT, operations.GET_BALANCE, operations.GET_EXTERNAL_ACCOUNT)


async def test_a_balance_keeps_every_digit_and_its_microseconds(service: Service) -> None:
    service.onboarding.accounts = {"a_1": ("t_1", "c_1")}
    service.bank.answers["/accounts/a_1/balance"] = (200, BALANCE)

    balance = await service.ask(operations.GET_BALANCE, PARTNER, account_id="a_1")

    assert balance == {
        "account_id": "a_1",
        "account_number": "123456789012",
        "available_balance": {"amount": Decimal("1234567890123456.78"), "currency": "USD"},
        "held_balance": {"amount": Decimal("0.02"), "currency": "USD"},
        "total_balance": {"amount": Decimal("1234567890123456.80"), "currency": "USD"},
        "system_timestamp": "2026-03-01T12:00:00.000001Z",
    }


async def test_an_account_is_read_in_its_read_shape(service: Service) -> None:
    service.onboarding.accounts = {"a_1": ("t_1", "c_1")}
    service.bank.add(
        account_answer("a_1", status="closed", closed_at="2026-03-01T08:00:00-04:00", new_field=1)
    )

    account = await service.ask(operations.GET_ACCOUNT, PARTNER, account_id="a_1")

    assert account == {
        "id": "a_1",
        "account_number": "123456789012",
        "account_group": "deposit",
        "account_title": "Acme Operating",
        "name": "Acme Incorporated",
        "dba_name": None,
        "status": "closed",
        "interest_earned_year_to_date": Decimal("1234567890123456.78"),
        "annual_percentage_yield_earned": Decimal("0.00"),
        "is_restricted": False,
        "close_date": "2026-03-01T12:00:00.000000Z",
    }


async def test_an_external_account_is_read_with_its_full_number(service: Service) -> None:
    service.onboarding.accounts = {"a_1": ("t_1", "c_1")}
    service.bank.answers["/accounts/a_1/external-account"] = (200, EXTERNAL)

    external = await service.ask(operations.GET_EXTERNAL_ACCOUNT, PARTNER, account_id="a_1")

    assert external == {
        "external_account_id": "e_1",
        "external_account_number": "987654321",
        "external_account_title": "Acme",
        "external_institution_aba": "021000021",
        "external_institution_name": "Other Bank",
    }


async def test_an_account_without_external_account_is_told_from_one_the_provider_lost(
    service: Service,
) -> None:
    service.onboarding.accounts = {"a_1": ("t_1", "c_1"), "a_2": ("t_1", "c_1")}
    service.bank.add(account_answer("a_1"))

    with pytest.raises(NotFound):
        await service.ask(operations.GET_EXTERNAL_ACCOUNT, PARTNER, account_id="a_1")
    with pytest.raises(ProviderError):
        await service.ask(operations.GET_EXTERNAL_ACCOUNT, PARTNER, account_id="a_2")


@pytest.mark.parametrize("operation", SINGLE)
@pytest.mark.parametrize(
    "principal",
    [
        Principal("t_2", "Partner Two", Family.PARTNER, "sub_9"),
        Principal("t_1", "Partner One", Family.CUSTOMER, "sub_8", "c_2"),
    ],
)
async def test_anothers_account_is_not_found_and_the_provider_not_asked(
    service: Service, operation: Any, principal: Principal
) -> None:
    service.onboarding.accounts = {"a_1": ("t_1", "c_1")}
    service.bank.add(account_answer("a_1"))
    await service.ask(operations.GET_ACCOUNT, PARTNER, account_id="a_1")
    service.bank.seen.clear()

    with pytest.raises(NotFound):
        await service.ask(operation, principal, account_id="a_1")

    assert service.bank.seen == []


@pytest.mark.parametrize("failure", [Unavailable(), ProviderTimeout()])
async def test_without_onboarding_a_read_is_unavailable_unless_the_owner_is_remembered(
    service: Service, failure: Exception
) -> None:
    service.onboarding.accounts = {"a_1": ("t_1", "c_1"), "a_2": ("t_1", "c_1")}
    service.bank.add(account_answer("a_1"), account_answer("a_2"))
    await service.ask(operations.GET_ACCOUNT, PARTNER, account_id="a_1")
    service.onboarding.failure = failure

    remembered = await service.ask(operations.GET_ACCOUNT, PARTNER, account_id="a_1")
    with pytest.raises(Unavailable):
        await service.ask(operations.GET_ACCOUNT, PARTNER, account_id="a_2")
    with pytest.raises(Unavailable):
        await service.ask(operations.LIST_PARTNER_ACCOUNTS, PARTNER)

    assert remembered["id"] == "a_1"


async def test_an_account_can_be_read_the_moment_onboarding_knows_it(service: Service) -> None:
    service.bank.add(account_answer("a_1"))
    with pytest.raises(NotFound):
        await service.ask(operations.GET_ACCOUNT, PARTNER, account_id="a_1")

    service.onboarding.accounts = {"a_1": ("t_1", "c_1")}

    assert (await service.ask(operations.GET_ACCOUNT, PARTNER, account_id="a_1"))["id"] == "a_1"


async def test_only_so_many_owners_are_remembered(service: Service) -> None:
    ids = ["a_1", "a_2", "a_3", "a_4"]
    service.onboarding.accounts = dict.fromkeys(ids, ("t_1", "c_1"))
    service.bank.add(*map(account_answer, ids))

    for account_id in [*ids, "a_4", "a_1"]:
        await service.ask(operations.GET_ACCOUNT, PARTNER, account_id=account_id)

    assert service.onboarding.asked["onboarding.find_account_owner"] == 5


async def test_the_partners_list_has_every_account_of_its_customers_newest_first(
    service: Service,
) -> None:
    ids = [f"a_{number:04}" for number in range(250)]
    service.onboarding.accounts = {key: ("t_1", f"c_{key}") for key in ids} | {
        "a_other": ("t_2", "c_x")
    }
    service.onboarding.page = 60
    service.bank.add(*map(account_answer, ids))

    listed = await service.ask(operations.LIST_PARTNER_ACCOUNTS, PARTNER)

    assert (listed["name"], listed["dba_name"]) == ("Partner One", None)
    assert [item["id"] for item in listed["accounts"]] == ids[::-1]
    assert set(listed["accounts"][0]) == {
        "id",
        "account_number",
        "account_group",
        "account_title",
        "status",
        "interest_earned_year_to_date",
        "annual_percentage_yield_earned",
        "close_date",
    }
    assert len(service.bank.seen) == 3


async def test_the_customers_list_carries_its_name_and_only_its_accounts(service: Service) -> None:
    service.onboarding.accounts = {
        "a_1": ("t_1", "c_1"),
        "a_2": ("t_1", "c_2"),
        "a_3": ("t_1", "c_1"),
    }
    service.bank.add(*map(account_answer, service.onboarding.accounts))

    listed = await service.ask(operations.LIST_CUSTOMER_ACCOUNTS, CUSTOMER)

    item = {
        "account_number": "123456789012",
        "account_group": "deposit",
        "account_title": "Acme Operating",
    }
    assert listed == {
        "name": "Acme Incorporated",
        "dba_name": "Acme",
        "accounts": [{"id": "a_3", **item}, {"id": "a_1", **item}],
    }
    assert service.onboarding.asked_for == {CUSTOMER}, "in the caller's share of onboarding"


async def test_a_list_without_accounts_asks_no_provider(service: Service) -> None:
    listed = await service.ask(operations.LIST_PARTNER_ACCOUNTS, PARTNER)

    assert listed["accounts"] == []
    assert service.bank.seen == []


@pytest.mark.parametrize(
    "operation", [operations.GET_ACCOUNT, operations.GET_BALANCE, operations.LIST_PARTNER_ACCOUNTS]
)
async def test_an_account_that_the_provider_lost_is_an_error_not_hidden(
    service: Service, operation: Any
) -> None:
    service.onboarding.accounts = {"a_1": ("t_1", "c_1"), "a_2": ("t_1", "c_1")}
    service.bank.add(account_answer("a_2"))
    command = {"account_id": "a_1"} if operation in SINGLE else {}

    with pytest.raises(ProviderError):
        await service.ask(operation, PARTNER, **command)


@pytest.mark.parametrize(
    "change",
    [
        {"available": "lots of 4711"},
        {"available": None},
        {"available": "NaN"},
        {"currency": "dollars4711"},
        {"as_of": "2026-03-01T12:00:00"},
        {"account_id": "a_other"},
        {"account_number": 4711},
    ],
)
async def test_a_broken_answer_is_a_provider_error_logged_without_its_content(
    service: Service, change: dict[str, Any]
) -> None:
    service.onboarding.accounts = {"a_1": ("t_1", "c_1")}
    service.bank.answers["/accounts/a_1/balance"] = (200, BALANCE | change)

    with capture_logs() as logs, pytest.raises(ProviderError):
        await service.ask(operations.GET_BALANCE, PARTNER, account_id="a_1")

    assert [entry["log_level"] for entry in logs] == ["error"]
    assert "4711" not in str(logs)


async def test_linked_external_accounts_come_in_the_providers_order_with_the_last_four(
    service: Service,
) -> None:
    service.onboarding.accounts = {"a_1": ("t_1", "c_1")}

    def linked(number: int) -> dict[str, Any]:
        return {
            "external_account_id": f"e_{number}",
            "bank_name": "Other Bank",
            "name_on_account": "Acme",
            "routing_number": "021000021",
            "account_number": f"98765{number:04}",
            "primary": number == 0,
        }

    first = "/external-accounts?customer_id=c_1&limit=100"
    service.bank.answers |= {
        first: (200, {"external_accounts": [linked(0), linked(2)], "next_cursor": "o 2"}),
        f"{first}&cursor=o+2": (200, {"external_accounts": [linked(1)], "next_cursor": None}),
    }

    listed = await service.ask(operations.LIST_EXTERNAL_ACCOUNTS, CUSTOMER)

    assert [(item["external_account_id"], item["account_number"]) for item in listed] == [
        ("e_0", "0000"),
        ("e_2", "0002"),
        ("e_1", "0001"),
    ]
    assert [item["primary"] for item in listed] == [True, False, False]


@pytest.mark.parametrize(
    "operation", [operations.LIST_CUSTOMER_ACCOUNTS, operations.LIST_EXTERNAL_ACCOUNTS]
)
async def test_a_customer_of_another_tenant_is_not_found_and_the_provider_not_asked(
    service: Service, operation: Operation
) -> None:
    service.onboarding.accounts = {"a_1": ("t_1", "c_1")}
    service.bank.add(account_answer("a_1"))
    service.bank.answers["/external-accounts"] = (
        200,
        {"external_accounts": [], "next_cursor": None},
    )
    of_another = Principal("t_2", "Partner Two", Family.CUSTOMER, "sub_9", "c_1")

    with pytest.raises(NotFound):
        await service.ask(operation, of_another)

    assert service.bank.seen == []
    assert NotFound in operation.errors


async def test_pages_in_a_circle_end_in_an_error(service: Service) -> None:
    service.onboarding.accounts = {"a_1": ("t_1", "c_1")}
    page = {"external_accounts": [], "next_cursor": "o1"}
    service.bank.answers["/external-accounts"] = (200, page)

    with pytest.raises(ProviderError):
        await service.ask(operations.LIST_EXTERNAL_ACCOUNTS, CUSTOMER)
