"""Customers at a provider who does not know our ids: found by whom onboarding holds its records for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from services.reconciliation.handlers.customers import CustomerComparison, CustomerLists
from services.reconciliation.handlers.external_accounts import ExternalAccountComparison
from services.reconciliation.handlers.holders import (
    external_accounts_with_holders,
    lists_with_holders,
)
from tests.unit.reconciliation import records as r
from tests.unit.reconciliation.fakes import DIGEST, FakeList, FakeOnboarding, RowT, compared

NAMELESS = {"customer_id": "", "business_customer_id": None}


class NamelessList(FakeList[RowT]):
    async def of_customers(self, customer_ids: Sequence[str], deadline: float) -> list[RowT]:
        return await self.by_ids(customer_ids, deadline)


class Books:
    """Both sides' books, which agree until a test changes one."""

    def __init__(self) -> None:
        self.ours = FakeOnboarding([r.our_customer()], [r.our_external_account()])
        self.identity = NamelessList(
            [
                r.identity_business(**NAMELESS),
                r.identity_person(**NAMELESS, business_record_id="idn_1", status=None),
            ],
            "identity_id",
        )
        self.core = NamelessList([r.core_business(**NAMELESS), person("cus_2", "cus_1")], "core_id")
        self.external = NamelessList([external("ext_1")], "external_account_id")
        self.accounts = NamelessList([account("acc_1", "cus_1")], "account_id")

    async def names(self) -> set[tuple[str, str]]:
        lists = CustomerLists(self.identity, self.core, self.accounts)
        customers = CustomerComparison(self.ours, lists_with_holders(lists, self.ours), DIGEST)
        external = external_accounts_with_holders(self.external, self.ours)
        external_accounts = ExternalAccountComparison(self.ours, external, DIGEST)
        named = set()
        for finding in (await compared(customers, external_accounts)).values():
            assert isinstance(finding, list)
            named |= {(one.kind, one.subject) for one in finding}
        return named


def person(core_id: str, business: str) -> Any:
    return r.core_person(**NAMELESS, core_id=core_id, business_record_id=business)


def account(account_id: str, core_id: str, **changes: Any) -> Any:
    return r.core_account(account_id=account_id, core_id=core_id, customer_id="", **changes)


def external(external_account_id: str, **changes: Any) -> Any:
    return r.core_external_account(
        external_account_id=external_account_id, customer_id="", primary=None, **changes
    )


@pytest.fixture
def books() -> Books:
    return Books()


async def test_books_that_agree(books: Books) -> None:
    assert await books.names() == set()


async def test_an_unknown_business_is_found_with_all_that_belongs_to_it(books: Books) -> None:
    books.identity.rows.append(r.identity_business(**NAMELESS, identity_id="idn_9"))
    books.core.rows += [r.core_business(**NAMELESS, core_id="cus_9"), person("cus_10", "cus_9")]
    books.accounts.rows.append(account("acc_9", "cus_9"))
    books.external.rows.append(external("ext_9"))

    assert await books.names() == {
        ("identity_customer_unknown_to_us", "idn_9"),
        ("core_customer_unknown_to_us", "cus_9"),
        ("core_customer_unknown_to_us", "cus_10"),
        ("account_unknown_to_us", "acc_9"),
        ("external_account_unknown_to_us", "ext_9"),
    }


async def test_an_unknown_person_and_account_of_a_business_of_ours_are_found(books: Books) -> None:
    books.core.rows.append(person("cus_9", "cus_1"))
    books.accounts.rows.append(account("acc_9", "cus_1"))

    assert await books.names() == {
        ("core_customer_unknown_to_us", "cus_9"),
        ("account_unknown_to_us", "acc_9"),
    }


async def test_what_is_closed_needs_no_holder(books: Books) -> None:
    books.core.rows.append(r.core_business(**NAMELESS, core_id="cus_9", status="closed"))
    books.accounts.rows.append(account("acc_9", "cus_9", status="closed"))
    books.external.rows.append(external("ext_9", status="closed"))

    assert await books.names() == set()


async def test_what_the_provider_lost_is_found(books: Books) -> None:
    for rows in (books.identity, books.core, books.external, books.accounts):
        rows.rows.clear()

    assert {kind for kind, _ in await books.names()} == {
        "identity_customer_missing",
        "core_customer_missing",
        "external_account_missing_at_provider",
        "account_missing_at_provider",
    }


async def test_an_account_of_another_customer_of_ours_is_found(books: Books) -> None:
    other = r.our_business(customer_id="c_9", identity_id=None, core_id="cus_9")
    books.ours.held.append(r.our_customer(customer_id="c_9", parties=[other], accounts=[]))
    books.core.rows.append(r.core_business(**NAMELESS, core_id="cus_9"))
    books.accounts.rows[0] = account("acc_1", "cus_9")

    assert {kind for kind, _ in await books.names()} == {"account_owner", "account_unknown_to_us"}


async def test_of_a_part_of_the_fields_only_that_part_is_compared(books: Books) -> None:
    partial = {"business_name": "Anvil Works", "ein": "123456789"}
    books.core.rows[0] = r.core_business(**NAMELESS, fields=partial, fields_are_partial=True)
    assert await books.names() == set()

    partial["ein"] = "987654321"

    assert await books.names() == {("core_fields", "cus_1")}
