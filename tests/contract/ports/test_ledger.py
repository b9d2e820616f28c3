"""ledger_read's `Financial` and `Ledger`: what every financial provider behind the two ports does alike."""

from __future__ import annotations

import time
from datetime import date
from decimal import Decimal
from typing import Any

import pytest

from libs.contracts.accounts import AccountSummary
from libs.contracts.ach import ListAchRequests
from libs.contracts.deposit_locations import ListDepositLocations
from libs.contracts.errors import NotFound, ProviderError
from libs.contracts.settlement import ListSettlementCalculations, SettlementCalculation
from libs.contracts.statements import ListStatements
from libs.contracts.transactions import ListTransactions, Transaction
from services.ledger_read.models import Page
from tests.contract.ports.ledger_banks import LedgerBank, Opened
from tests.support.pace import pace
from tests.unit.ledger_read.fakes import PARTNER

MONDAY, TUESDAY, WEDNESDAY = date(2025, 3, 10), date(2025, 3, 11), date(2025, 3, 12)


def soon() -> float:
    return time.time() + 10 * pace()


async def an_account_with_postings(bank: LedgerBank) -> Opened:
    """Of 300.00, three times 40.00 are debited on Tuesday and 50.00 are credited on Wednesday."""
    opened = await bank.open_account()
    await bank.post(opened, Decimal("300.00"), MONDAY)
    for _ in range(3):
        await bank.post(opened, Decimal("-40.00"), TUESDAY)
    await bank.post(opened, Decimal("50.00"), WEDNESDAY)
    return opened


async def transactions(bank: LedgerBank, opened: Opened, **query: Any) -> Page[Transaction]:
    command = ListTransactions(account_id=opened.account_id, **query)
    return await bank.ledger.transactions(command, soon())


def signed(rows: list[Transaction]) -> list[Decimal]:
    return [-row.amount if row.debit_credit_flag else row.amount for row in rows]


async def test_accounts_are_read_one_by_one_and_listed_newest_first(
    ledger_bank: LedgerBank,
) -> None:
    first, second = await ledger_bank.open_account(), await ledger_bank.open_account()

    account = await ledger_bank.financial.account(PARTNER, first.account_id, soon())
    ids = [first.account_id, second.account_id]
    both = await ledger_bank.financial.accounts(PARTNER, ids, soon())
    summaries = await ledger_bank.financial.summaries(ids, soon())

    assert (account.id, account.status, account.account_group) == (
        first.account_id,
        "open",
        "deposit",
    )
    assert account.account_number
    assert [each.id for each in both] == [second.account_id, first.account_id]
    assert [dict(summary) for summary in summaries] == [
        {name: getattr(each, name) for name in AccountSummary.model_fields} for each in both
    ]


async def test_an_account_that_the_provider_does_not_know_is_its_error(
    ledger_bank: LedgerBank,
) -> None:
    known = await ledger_bank.open_account()
    unknown = ListTransactions(account_id="acc_unknown")

    with pytest.raises(ProviderError):
        await ledger_bank.financial.account(PARTNER, "acc_unknown", soon())
    with pytest.raises(ProviderError):
        await ledger_bank.financial.accounts(PARTNER, [known.account_id, "acc_unknown"], soon())
    with pytest.raises(ProviderError):
        await ledger_bank.financial.balance("acc_unknown", soon())
    with pytest.raises(ProviderError):
        await ledger_bank.ledger.transactions(unknown, soon())


async def test_a_balance_is_the_sum_of_what_was_posted(ledger_bank: LedgerBank) -> None:
    opened = await an_account_with_postings(ledger_bank)

    balance = await ledger_bank.financial.balance(opened.account_id, soon())

    assert balance.account_id == opened.account_id
    assert (balance.total_balance.amount, balance.total_balance.currency) == (Decimal(230), "USD")
    assert balance.available_balance.amount == Decimal(230)
    assert balance.held_balance.amount == 0


async def test_the_primary_external_account_is_the_accounts_and_all_are_the_customers(
    ledger_bank: LedgerBank,
) -> None:
    opened = await ledger_bank.open_account()
    with pytest.raises(NotFound):
        await ledger_bank.financial.external_account(PARTNER, opened.account_id, soon())
    await ledger_bank.link(opened, "1111222233")
    await ledger_bank.link(opened, "4444555566")

    primary = await ledger_bank.financial.external_account(PARTNER, opened.account_id, soon())
    linked = await ledger_bank.financial.external_accounts(PARTNER, opened.customer_id, soon())

    assert primary.external_account_number == "4444555566"
    assert [(one.account_number, one.primary) for one in linked] == [
        ("5566", True),
        ("2233", False),
    ]
    assert linked[0].external_account_id == primary.external_account_id


async def test_transactions_are_the_newest_first_and_every_page_continues_the_last(
    ledger_bank: LedgerBank,
) -> None:
    opened = await an_account_with_postings(ledger_bank)

    whole = await transactions(ledger_bank, opened)
    pages = [await transactions(ledger_bank, opened, page=n, limit=2) for n in (1, 2, 3, 4)]

    assert signed(whole.rows) == [50, -40, -40, -40, 300]
    assert [page.total for page in (whole, *pages)] == [5] * 5
    assert [len(page.rows) for page in pages] == [2, 2, 1, 0]
    assert [row for page in pages for row in page.rows] == whole.rows
    assert len({row.tx_uuid for row in whole.rows}) == 5


async def test_transactions_are_chosen_by_day_and_by_id(ledger_bank: LedgerBank) -> None:
    if not ledger_bank.posts_in_the_past:
        pytest.skip("all that this bank posts is of today")
    opened = await an_account_with_postings(ledger_bank)
    [newest, *_] = (await transactions(ledger_bank, opened)).rows

    until = await transactions(ledger_bank, opened, end_date=TUESDAY)
    on_tuesday = await transactions(
        ledger_bank, opened, start_date=TUESDAY, end_date=TUESDAY, limit=1
    )
    by_id = await transactions(ledger_bank, opened, transaction_id=newest.transaction_id)
    unknown = await transactions(ledger_bank, opened, transaction_id="txn&page=2")

    assert signed(until.rows) == [-40, -40, -40, 300]
    assert signed(on_tuesday.rows) == [-40]
    assert on_tuesday.total == 3
    assert by_id == Page([newest], 1)
    assert unknown == Page([], 0)


async def test_ach_requests_are_the_newest_first_or_the_one_of_a_reference(
    ledger_bank: LedgerBank,
) -> None:
    opened = await an_account_with_postings(ledger_bank)
    older = await ledger_bank.request_ach(opened, Decimal("10.00"))
    newer = await ledger_bank.request_ach(opened, Decimal("20.50"))

    everything = await ledger_bank.ledger.ach_requests(
        ListAchRequests(account_id=opened.account_id), soon()
    )
    [one] = await ledger_bank.ledger.ach_requests(
        ListAchRequests(account_id=opened.account_id, reference_id=older), soon()
    )

    assert [row.reference_id for row in everything] == [newer, older]
    assert [row.status for row in everything] == ["pending"] * 2
    assert (one.amount, one.originating_account_id) == ("10.00", opened.account_id)


@pytest.mark.parametrize("reference_id", [".", "..", "%2e", "a/b?c=d", "no_such_reference"])
async def test_a_reference_that_no_ach_request_has_finds_none(
    ledger_bank: LedgerBank, reference_id: str
) -> None:
    opened = await ledger_bank.open_account()

    found = await ledger_bank.ledger.ach_requests(
        ListAchRequests(account_id=opened.account_id, reference_id=reference_id), soon()
    )

    assert found == []


async def test_statements_are_those_whose_periods_overlap(ledger_bank: LedgerBank) -> None:
    opened = await ledger_bank.open_account()
    for month in (1, 2, 3):
        await ledger_bank.post(opened, Decimal("10.00"), date(2025, month, 15))
        await ledger_bank.generate_statement(opened, 2025, month)
    account_id = opened.account_id

    everything = await ledger_bank.ledger.statements(ListStatements(account_id=account_id), soon())
    overlapping = await ledger_bank.ledger.statements(
        ListStatements(
            account_id=account_id, start_date=date(2025, 2, 20), end_date=date(2025, 3, 1)
        ),
        soon(),
    )
    by_id = await ledger_bank.ledger.statements(
        ListStatements(account_id=account_id, statement_id=everything[0].statement_id), soon()
    )

    assert [(row.year, row.month) for row in everything] == [(2025, 3), (2025, 2), (2025, 1)]
    assert [row.month for row in overlapping] == [3, 2]
    assert [row.statement_id for row in by_id] == [everything[0].statement_id]
    assert by_id[0].formats.format == "pdf"
    assert by_id[0].formats.url.startswith("http")


async def test_deposit_locations_are_those_of_the_latest_load_or_of_a_days(
    ledger_bank: LedgerBank,
) -> None:
    opened = await ledger_bank.open_account()
    none = await ledger_bank.ledger.deposit_locations(
        ListDepositLocations(account_id=opened.account_id), soon()
    )
    await ledger_bank.post(opened, Decimal("100.07"), MONDAY)
    await ledger_bank.sweep(opened, TUESDAY)
    await ledger_bank.post(opened, Decimal("50.00"), TUESDAY)
    await ledger_bank.sweep(opened, WEDNESDAY)

    latest = await ledger_bank.ledger.deposit_locations(
        ListDepositLocations(account_id=opened.account_id), soon()
    )
    first = await ledger_bank.ledger.deposit_locations(
        ListDepositLocations(account_id=opened.account_id, load_date=TUESDAY), soon()
    )

    assert none == Page([], 0, None)
    assert (latest.as_of_date, sum(row.balance for row in latest.rows)) == (
        WEDNESDAY,
        Decimal("150.07"),
    )
    assert (first.as_of_date, sum(row.balance for row in first.rows)) == (
        TUESDAY,
        Decimal("100.07"),
    )


async def calculations(
    bank: LedgerBank, opened: Opened, since: date
) -> list[SettlementCalculation] | None:
    command = ListSettlementCalculations(
        account_id=opened.account_id, token_type="rrc", settlement_date=since
    )
    return await bank.ledger.settlement_calculations(command, soon())


async def test_settlement_calculations_are_those_from_a_day_on_where_there_is_a_reserve(
    ledger_bank: LedgerBank,
) -> None:
    opened = await ledger_bank.open_account()
    without_reserve = await calculations(ledger_bank, opened, MONDAY)
    if not ledger_bank.has_reserves:
        assert without_reserve is None
        return
    await ledger_bank.open_reserve(opened)
    empty = await calculations(ledger_bank, opened, MONDAY)
    for day, amount in ((MONDAY, "-12.30"), (TUESDAY, "0.00"), (WEDNESDAY, "5.00")):
        await ledger_bank.calculate(opened, day, Decimal(amount))

    since_tuesday = await calculations(ledger_bank, opened, TUESDAY)

    assert without_reserve is None
    assert empty == []
    assert since_tuesday is not None
    assert [(row.settlement_date, row.amount) for row in since_tuesday] == [
        (WEDNESDAY, "5.00"),
        (TUESDAY, "0.00"),
    ]
    assert len({row.reserve_account_number for row in since_tuesday}) == 1
