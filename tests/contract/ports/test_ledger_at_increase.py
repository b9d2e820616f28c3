"""What ledger_read reads at Increase: what is Increase's own beyond what every financial provider does alike."""

from __future__ import annotations

import time
import uuid
from contextlib import AsyncExitStack
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal

import aiohttp
import pytest
from increase import AsyncIncrease

from libs.contracts.ach import AchRequest, ListAchRequests
from libs.contracts.bank_days import today_at_the_bank
from libs.contracts.errors import ProviderError
from libs.contracts.statements import ListStatements
from libs.contracts.transactions import ListTransactions, Transaction
from libs.providers.exchanges import REQUESTS
from libs.providers.increase.accounts import Account, retrieve_account
from libs.providers.increase.client import IncreaseClient
from libs.providers.increase.external_accounts import BankDetails, retrieve_bank_details
from libs.providers.increase.wires import retrieve_wire
from services.ledger_read.adapters.increase.composition import open_role
from services.ledger_read.models import Posting
from services.ledger_read.ports import CursorRefused
from tests.contract.ports.increase_ledger import READER, IncreaseLedgerBank
from tests.contract.ports.ledger_banks import Opened
from tests.support.increase_bank.faults import FaultRule
from tests.support.increase_clients import link_external, send_wire
from tests.support.metrics import value_of
from tests.support.pace import pace
from tests.support.waiting import eventually
from tests.unit.ledger_read.fakes import PARTNER

ACCOUNTS = "services.ledger_read.adapters.increase.accounts"
LEDGER = "services.ledger_read.adapters.increase.ledger"
WIRES_READ = REQUESTS.labels("financial", "get_wire", "ok")
TRANSACTIONS_LISTED = REQUESTS.labels("financial", "list_transactions", "ok")


def soon() -> float:
    return time.time() + 10 * pace()


@pytest.fixture
def bank(increase_ledger_bank: IncreaseLedgerBank) -> IncreaseLedgerBank:
    return increase_ledger_bank


async def transactions(bank: IncreaseLedgerBank, opened: Opened) -> list[Transaction]:
    command = ListTransactions(account_id=opened.account_id)
    return (await bank.ledger.transactions(command, soon())).rows


async def newest_postings(bank: IncreaseLedgerBank, opened: Opened) -> list[Posting]:
    page = await bank.postings.page(opened.account_id, None, soon())
    return await page.read(page.ids, soon())


async def ach_request(bank: IncreaseLedgerBank, opened: Opened, reference_id: str) -> AchRequest:
    command = ListAchRequests(account_id=opened.account_id, reference_id=reference_id)
    [request] = await bank.ledger.ach_requests(command, soon())
    return request


def links(bank: IncreaseLedgerBank) -> int:
    """Of files, that the bank has made."""
    [[count]] = bank.running.bank.store.rows("SELECT count(*) FROM object WHERE kind = 'file_link'")
    return int(count)


async def test_a_wire_is_held_until_it_is_debited_under_the_id_under_which_it_was_sent(
    bank: IncreaseLedgerBank,
) -> None:
    opened = await bank.open_funded_account()
    conduct, store = bank.running.bank.conduct, bank.running.bank.store
    conduct.wire_seconds = 3600
    account, wire_id = bank.accounts[opened.account_id], str(uuid.uuid4())
    external = await link_external(bank.increase)
    sent = await send_wire(bank.increase, account, external, 12_300, wire_id)
    before = await bank.financial.balance(opened.account_id, soon())
    conduct.wire_seconds = 0
    store.due(sent.id, 0)

    async def is_debited() -> list[Transaction]:
        rows = await transactions(bank, opened)
        assert len(rows) == 2
        return rows

    debit, credit = await eventually("the wire is debited", is_debited)
    after = await bank.financial.balance(opened.account_id, soon())

    assert (debit.transaction_id, debit.type, debit.amount, debit.debit_credit_flag) == (
        wire_id,
        "wire",
        Decimal("123.00"),
        True,
    )
    assert (debit.counterparty_name, debit.counterparty_id) == ("Supplier Inc", external.id)
    assert (credit.type, credit.counterparty_name, credit.amount) == (
        "wire",
        "Harbor Café",
        Decimal("1000.00"),
    )
    balances = [
        (one.available_balance.amount, one.held_balance.amount, one.total_balance.amount)
        for one in (before, after)
    ]
    assert balances == [
        (Decimal("877.00"), Decimal("123.00"), Decimal("1000.00")),
        (Decimal("877.00"), Decimal(0), Decimal("877.00")),
    ]


async def test_an_account_has_its_first_number_what_is_ours_and_the_interest_of_the_year(
    bank: IncreaseLedgerBank,
) -> None:
    opened = await bank.open_account()
    account_id = opened.account_id
    numbers = await bank.increase.account_numbers.list(account_id=account_id)
    year = today_at_the_bank().year
    for cents, end in [(900, (year - 1, 12, 31)), (150, (year, 1, 31)), (27, (year, 2, 28))]:
        await bank.increase.simulations.interest_payments.create(
            account_id=account_id,
            amount=cents,
            period_end=datetime(*end, 23, 59, 59, tzinfo=UTC),
        )
    await bank.increase.account_numbers.create(
        account_id=account_id, name="Another", idempotency_key=uuid.uuid4().hex
    )

    account = await bank.financial.account(PARTNER, account_id, soon())
    [newest, *_] = await transactions(bank, opened)

    assert (account.account_number, account.account_title) == (
        numbers.data[0].account_number,
        "Operating",
    )
    assert (account.name, account.dba_name) == ("Tidewater Goods LLC", "Tidewater")
    assert (account.is_restricted, account.interest_earned_year_to_date) == (
        False,
        Decimal("1.77"),
    )
    assert account.annual_percentage_yield_earned > 0
    assert (newest.type, newest.amount) == ("interest", Decimal("0.27"))
    assert newest.counterparty_name is not None


async def test_the_status_of_its_number_keeps_no_account_from_being_read(
    bank: IncreaseLedgerBank,
) -> None:
    opened = await bank.open_account()
    store = bank.running.bank.store
    [number] = (await bank.increase.account_numbers.list(account_id=opened.account_id)).data
    changed = store.get("account_number", number.id) | {"status": "of_a_later_release"}
    store.save(changed, beyond_sdk=True)

    balance = await bank.financial.balance(opened.account_id, soon())
    account = await bank.financial.account(PARTNER, opened.account_id, soon())

    assert balance.account_number == account.account_number == number.account_number


async def test_an_external_account_is_read_with_any_status(bank: IncreaseLedgerBank) -> None:
    opened = await bank.open_account()
    await bank.link(opened, "123456789012")
    store = bank.running.bank.store
    [made] = (await bank.increase.external_accounts.list()).data
    changed = store.get("external_account", made.id) | {"status": "of_a_later_release"}
    store.save(changed, beyond_sdk=True)

    found = await bank.financial.external_account(PARTNER, opened.account_id, soon())

    assert (found.external_account_number, found.external_institution_aba) == (
        "123456789012",
        "021000021",
    )


async def test_interest_that_was_accrued_on_another_account_is_not_the_accounts(
    bank: IncreaseLedgerBank,
) -> None:
    paid_into, accrued_on = [(await bank.open_account()).account_id for _ in range(2)]
    await bank.increase.simulations.interest_payments.create(
        account_id=paid_into, amount=500, accrued_on_account_id=accrued_on
    )

    accounts = await bank.financial.accounts(PARTNER, [paid_into, accrued_on], soon())

    assert [
        (one.interest_earned_year_to_date, one.annual_percentage_yield_earned) for one in accounts
    ] == [(Decimal(0), Decimal(0))] * 2


async def test_accounts_are_listed_by_the_time_at_which_they_were_opened(
    bank: IncreaseLedgerBank, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = bank.running.bank.store
    opened: list[str] = []
    for day in (3, 1, 4, 2):
        noon = datetime(2025, 3, day, 12, tzinfo=UTC)
        with monkeypatch.context() as patch:
            patch.setattr(store, "now", lambda at=noon: int(at.timestamp()) * 1_000_000)
            opened.append((await bank.open_account()).account_id)
    third, first, fourth, second = opened

    accounts = await bank.financial.accounts(PARTNER, opened, soon())
    summaries = await bank.financial.summaries(opened, soon())

    assert [account.id for account in accounts] == [fourth, third, second, first]
    assert [summary.id for summary in summaries] == [fourth, third, second, first]


async def test_a_summary_of_an_account_reads_no_interest(bank: IncreaseLedgerBank) -> None:
    opened = await bank.open_account()
    before = value_of(TRANSACTIONS_LISTED)

    await bank.financial.summaries([opened.account_id], soon())

    assert value_of(TRANSACTIONS_LISTED) == before


async def test_onboarding_is_asked_for_the_caller_of_a_read(bank: IncreaseLedgerBank) -> None:
    opened = await bank.open_account()
    await bank.link(opened, "987654321")

    await bank.financial.account(PARTNER, opened.account_id, soon())
    await bank.financial.external_account(PARTNER, opened.account_id, soon())
    await bank.financial.external_accounts(PARTNER, opened.customer_id, soon())

    assert bank.ownership.asked_for == {PARTNER}


async def test_an_account_that_is_not_the_one_asked_for_is_the_banks_error(
    bank: IncreaseLedgerBank, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked, other = await bank.open_account(), await bank.open_account()
    await bank.link(asked, "987654321")
    await bank.link(other, "123123123")
    [others] = bank.ownership.linked[other.customer_id]

    async def account(sdk: AsyncIncrease, _: str) -> Account:
        return await retrieve_account(sdk, other.account_id)

    async def external_account(sdk: AsyncIncrease, _: str) -> BankDetails:
        return await retrieve_bank_details(sdk, others.external_account_id)

    monkeypatch.setattr(ACCOUNTS + ".retrieve_account", account)
    monkeypatch.setattr(ACCOUNTS + ".retrieve_bank_details", external_account)

    with pytest.raises(ProviderError):
        await bank.financial.account(PARTNER, asked.account_id, soon())
    with pytest.raises(ProviderError):
        await bank.financial.summaries([asked.account_id], soon())
    with pytest.raises(ProviderError):
        await bank.financial.external_account(PARTNER, asked.account_id, soon())


async def test_an_ach_request_is_settled_returned_with_its_code_or_canceled(
    bank: IncreaseLedgerBank,
) -> None:
    opened = await bank.open_funded_account()
    other = await bank.open_account()
    simulate = bank.increase.simulations.ach_transfers
    settled, returned = [await bank.request_ach(opened, Decimal("10.00")) for _ in range(2)]
    await simulate.submit(settled)
    submitted = await ach_request(bank, opened, settled)
    await simulate.settle(settled)
    await simulate.submit(returned)
    await simulate.return_(returned, reason="account_closed")
    canceled = await bank.request_ach(opened, Decimal("3.00"), require_approval=True)
    await bank.increase.ach_transfers.cancel(canceled)

    found = [await ach_request(bank, opened, one) for one in (settled, returned, canceled)]
    foreign = await bank.ledger.ach_requests(
        ListAchRequests(account_id=other.account_id, reference_id=settled), soon()
    )

    assert submitted.status == "submitted"
    assert [(one.status, one.return_code) for one in found] == [
        ("settled", None),
        ("returned", "R02"),
        ("returned", "CANCELED"),
    ]
    assert found[1].return_description == "Account Closed"
    assert found[0].updated_at > found[0].created_at
    assert foreign == []


async def test_the_first_of_more_numbers_than_a_page_has_is_the_accounts(
    bank: IncreaseLedgerBank,
) -> None:
    bank.running.bank.conduct.page_limit = 1
    opened = await bank.open_account()
    [first] = (await bank.increase.account_numbers.list(account_id=opened.account_id)).data
    await bank.increase.account_numbers.create(
        account_id=opened.account_id, name="Another", idempotency_key=uuid.uuid4().hex
    )

    account = await bank.financial.account(PARTNER, opened.account_id, soon())

    assert account.account_number == first.account_number


async def test_of_more_ach_requests_than_are_listed_each_is_found_by_its_id(
    bank: IncreaseLedgerBank, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(LEDGER + ".MOST_PAGES", 1)
    bank.running.bank.conduct.page_limit = 1
    opened = await bank.open_funded_account()
    references = [await bank.request_ach(opened, Decimal("1.00")) for _ in range(2)]

    with pytest.raises(ProviderError) as refused:
        await bank.ledger.ach_requests(ListAchRequests(account_id=opened.account_id), soon())
    found = [(await ach_request(bank, opened, one)).reference_id for one in references]

    assert "reference_id" in refused.value.detail
    assert found == references


async def test_a_statement_of_a_month_is_downloaded_by_a_link_made_when_asked(
    bank: IncreaseLedgerBank, session: aiohttp.ClientSession
) -> None:
    opened = await bank.open_funded_account()
    await bank.generate_statement(opened, 2025, 2)

    [statement] = await bank.ledger.statements(
        ListStatements(account_id=opened.account_id, start_date=date(2025, 2, 28)), soon()
    )
    none = await bank.ledger.statements(
        ListStatements(account_id=opened.account_id, start_date=date(2025, 3, 1)), soon()
    )

    assert (statement.start_date, statement.end_date) == (date(2025, 2, 1), date(2025, 2, 28))
    assert none == []
    life = statement.formats.url_expires_at - datetime.now(UTC)
    assert timedelta(minutes=14) < life <= timedelta(minutes=30)
    async with session.get(statement.formats.url) as response:
        assert (await response.read()).startswith(b"%PDF")


async def test_a_statement_has_one_link_at_the_bank_however_often_it_is_asked_for(
    bank: IncreaseLedgerBank, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(LEDGER + ".LINK_SECONDS", 6 * 3600)  # the test does not run over its end
    opened = await bank.open_funded_account()
    await bank.generate_statement(opened, 2025, 2)
    bank.running.bank.faults.put(
        FaultRule(operation="POST /file_links", kind="accept_then_drop", times=1)
    )

    for _ in range(2):
        await bank.ledger.statements(ListStatements(account_id=opened.account_id), soon())

    assert links(bank) == 1


async def test_a_key_that_was_used_otherwise_keeps_no_statement_from_being_linked(
    bank: IncreaseLedgerBank,
) -> None:
    opened = await bank.open_funded_account()
    await bank.generate_statement(opened, 2025, 2)
    bank.running.bank.faults.put(
        FaultRule(operation="POST /file_links", kind="key_conflict", times=1)
    )

    [statement] = await bank.ledger.statements(ListStatements(account_id=opened.account_id), soon())

    assert statement.formats.url.startswith(bank.running.url)
    assert links(bank) == 2


async def test_more_links_than_one_list_may_have_are_not_made(
    bank: IncreaseLedgerBank, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(LEDGER + ".MOST_LINKS", 1)
    opened = await bank.open_funded_account()
    for month in (1, 2):
        await bank.generate_statement(opened, 2025, month)

    with pytest.raises(ProviderError) as refused:
        await bank.ledger.statements(ListStatements(account_id=opened.account_id), soon())
    made = links(bank)
    fewer = await bank.ledger.statements(
        ListStatements(account_id=opened.account_id, start_date=date(2025, 2, 10)), soon()
    )

    assert "start_date" in refused.value.detail
    assert made == 0
    assert len(fewer) == 1


async def test_a_wire_that_came_back_is_listed_with_its_return(bank: IncreaseLedgerBank) -> None:
    opened = await bank.open_funded_account()
    bank.running.bank.conduct.wire_seconds = 0.1
    account, external = bank.accounts[opened.account_id], await link_external(bank.increase)
    wire_id = str(uuid.uuid4())
    sent = await send_wire(bank.increase, account, external, 12_368, wire_id)

    async def came_back() -> bool:  # as 68 cents tell the fake
        return (await retrieve_wire(bank.increase, sent.id)).status == "reversed"

    await eventually("the wire came back", came_back)
    returned, debit, _ = await newest_postings(bank, opened)

    assert debit.transaction_id == wire_id
    assert returned.type == "return"
    assert (returned.amount, debit.amount) == (Decimal("123.68"), Decimal("123.68"))
    assert (returned.is_debit, debit.is_debit) == (False, True)


async def test_the_wire_of_a_posting_is_read_once(bank: IncreaseLedgerBank) -> None:
    opened = await bank.open_funded_account()
    bank.running.bank.conduct.wire_seconds = 0.1
    account, external = bank.accounts[opened.account_id], await link_external(bank.increase)
    wire_id = str(uuid.uuid4())
    await send_wire(bank.increase, account, external, 12_300, wire_id)

    async def debits() -> list[str]:
        postings = await newest_postings(bank, opened)
        found = [posting.transaction_id for posting in postings if posting.is_debit]
        assert found
        return found

    first = await eventually("the wire is debited", debits)
    asked = value_of(WIRES_READ)
    again = await debits()

    assert first == again == [wire_id]
    assert value_of(WIRES_READ) == asked > 0


async def test_wires_of_postings_that_are_mirrored_are_not_read_again_after_a_restart(
    bank: IncreaseLedgerBank, session: aiohttp.ClientSession
) -> None:
    opened = await bank.open_funded_account()
    bank.running.bank.conduct.wire_seconds = 0.1
    account, external = bank.accounts[opened.account_id], await link_external(bank.increase)
    await send_wire(bank.increase, account, external, 12_300, str(uuid.uuid4()))

    async def with_debit() -> list[Transaction]:
        rows = await transactions(bank, opened)
        assert len(rows) == 2
        return rows

    before = await eventually("the wire is debited", with_debit)
    asked = bank.running.bank.requests["GET /wire_transfers/{id}"]
    client = IncreaseClient("financial", bank.running.url, READER, session)
    async with AsyncExitStack() as stack:
        restarted = await open_role(client, stack, bank.database, bank.ownership)
        command = ListTransactions(account_id=opened.account_id)
        after = (await restarted.ledger.transactions(command, soon())).rows

    assert after == before
    assert bank.running.bank.requests["GET /wire_transfers/{id}"] == asked > 0


async def test_a_cursor_of_others_is_refused_as_such(bank: IncreaseLedgerBank) -> None:
    opened = await bank.open_funded_account()

    with pytest.raises(CursorRefused):
        await bank.postings.page(opened.account_id, "not-a-cursor", soon())
    bank.running.bank.violations.clear()  # it was meant


async def test_a_closed_account_is_shown_as_closed(bank: IncreaseLedgerBank) -> None:
    opened = await bank.open_account()
    await bank.increase.accounts.close(opened.account_id)

    account = await bank.financial.account(PARTNER, opened.account_id, soon())

    assert account.status == "closed"
    assert account.close_date is not None


async def test_a_wire_that_names_no_debtor_did_not_come_from_the_accounts_holder(
    bank: IncreaseLedgerBank,
) -> None:
    opened = await bank.open_account()
    numbers = await bank.increase.account_numbers.list(account_id=opened.account_id)
    await bank.increase.simulations.inbound_wire_transfers.create(
        account_number_id=numbers.data[0].id, amount=100_000, creditor_name="Tidewater Goods LLC"
    )

    [credit] = await transactions(bank, opened)

    assert credit.counterparty_name == "Inbound wire transfer"
