"""ledger_read's feed at Increase: thin events, each read anew, and accounts that are not ours or not ours yet."""

from __future__ import annotations

import time
import uuid
from datetime import date
from decimal import Decimal

import pytest
from increase.types import Account
from structlog.testing import capture_logs

from libs.contracts.accounts import AccountEventData
from libs.contracts.ach import AchEventData
from libs.contracts.errors import ProviderError
from libs.contracts.principal import SERVICE
from libs.contracts.statements import ListStatements
from libs.contracts.transactions import ListTransactions
from libs.providers.errors import AttemptFailed, Failure
from libs.providers.feed_entries import FeedCursor, UndecodableEntry
from services.ledger_read.adapters.increase.transactions import ListedTransaction
from services.ledger_read.models import FeedEntry, WaitingEntry
from services.ledger_read.waiting_entries import add as add_waiting
from tests.contract.ports.increase_ledger import IncreaseLedgerBank
from tests.support.ids import made_id
from tests.support.increase_bank.postings import post
from tests.support.increase_clients import give_number, make_entity, open_account
from tests.support.pace import pace

FEED = "services.ledger_read.adapters.increase.feed"


def soon() -> float:
    return time.time() + 10 * pace()


@pytest.fixture
def bank(increase_ledger_bank: IncreaseLedgerBank) -> IncreaseLedgerBank:
    return increase_ledger_bank


async def entries(
    bank: IncreaseLedgerBank, after: FeedCursor | None = None, limit: int = 100
) -> list[FeedEntry]:
    return list(await bank.feed(after or FeedCursor(0), limit))


async def account_of_a_business(bank: IncreaseLedgerBank) -> Account:
    """One that onboarding does not know, of an entity that onboarding made."""
    entity = await make_entity(bank.increase, description=str(made_id()))
    account = await open_account(bank.increase, entity)
    await give_number(bank.increase, account)
    return account


def debit_of_an_unknown_wire(bank: IncreaseLedgerBank, account_id: str) -> None:
    store = bank.running.bank.store
    details = {
        "account_number": "987654321",
        "amount": 100,
        "message_to_recipient": "Invoice 2047",
        "routing_number": "021000021",
        "transfer_id": "wire_transfer_unknown",
    }
    with store.writing():
        post(store, account_id, -100, "wire_transfer_intention", details, description="A wire")


def waiting(found: list[FeedEntry]) -> list[WaitingEntry]:
    return [entry.waiting for entry in found if entry.waiting is not None]


def opened_accounts(found: list[FeedEntry]) -> list[str | None]:
    return [
        entry.event.resource_id if entry.event else None
        for entry in found
        if entry.type == "account.created"
    ]


async def test_events_are_of_the_same_ids_as_what_is_read(bank: IncreaseLedgerBank) -> None:
    opened = await bank.open_funded_account()
    reference = await bank.request_ach(opened, Decimal("10.00"))
    await bank.increase.simulations.ach_transfers.submit(reference)
    await bank.increase.simulations.ach_transfers.settle(reference)
    await bank.generate_statement(opened, 2025, 2)

    found = await entries(bank)

    reported = [entry.event for entry in found if entry.event is not None]
    assert {event.customer_id for event in reported} == {opened.customer_id}
    told = [(event.event_type.name, event.resource_id) for event in reported]
    listed = await bank.ledger.transactions(ListTransactions(account_id=opened.account_id), soon())
    rows = {row.type: row.transaction_id for row in listed.rows}
    [statement] = await bank.ledger.statements(ListStatements(account_id=opened.account_id), soon())
    assert set(told) == {
        ("account.opened", opened.account_id),
        ("transaction.created", rows["wire"]),
        ("transaction.created", rows["ach"]),
        ("ach.created", reference),
        ("ach.settled", reference),
        ("statement.available", statement.statement_id),
    }
    passed = {(event.event_type.name, event.state) for entry in found for event in entry.earlier}
    assert passed == {("ach.submitted", "submitted")}
    numbers = [
        data["account_number"]
        for event in reported
        if "account_number" in (data := event.data.model_dump())
    ]
    assert numbers
    assert {len(number) for number in numbers} == {4}
    assert [entry.position for entry in found] == list(range(1, len(found) + 1))


async def test_an_ach_request_is_reported_as_created_as_it_was_then_though_it_was_returned_since(
    bank: IncreaseLedgerBank,
) -> None:
    opened = await bank.open_funded_account()
    reference = await bank.request_ach(opened, Decimal("10.00"))
    await bank.increase.simulations.ach_transfers.submit(reference)
    await bank.increase.simulations.ach_transfers.return_(reference, reason="insufficient_fund")

    found = await entries(bank)

    told = [
        (event.event_type.name, data.status, data.return_code)
        for entry in found
        for event in (*entry.earlier, entry.event)
        if event is not None and isinstance(data := event.data, AchEventData)
    ]
    assert told[0] == ("ach.created", "pending", None)
    assert told[-1] == ("ach.returned", "returned", "R01")
    [created] = [
        entry.event.data
        for entry in found
        if entry.event is not None and entry.event.event_type.name == "ach.created"
    ]
    assert isinstance(created, AchEventData)
    assert created.return_description is None
    assert created.updated_at == created.created_at


async def test_a_transaction_that_is_shown_late_is_listed_once_its_event_is_read(
    bank: IncreaseLedgerBank,
) -> None:
    opened = await bank.open_account()
    span = {"first": "2025-03-01T00:00:00Z", "last": "2025-03-31T00:00:00Z"}
    await bank.order(f"accounts/{opened.account_id}/history", {"count": 250, **span})
    listing = ListTransactions(account_id=opened.account_id)
    before = await bank.ledger.transactions(listing, soon())
    await bank.post(opened, Decimal("5.00"), date(2025, 3, 12))

    await entries(bank)

    after = await bank.ledger.transactions(listing, soon())
    assert (before.total, after.total) == (250, 251)


async def test_the_feed_goes_on_from_any_of_its_entries(bank: IncreaseLedgerBank) -> None:
    await bank.open_funded_account()
    whole = await entries(bank)

    apart: list[FeedEntry] = []
    while page := await entries(bank, cursor_of(apart), limit=1):
        apart += page

    assert [entry.event_id for entry in apart] == [entry.event_id for entry in whole]


async def test_entries_of_an_account_that_onboarding_may_be_about_to_own_wait_and_hold_up_no_other(
    bank: IncreaseLedgerBank,
) -> None:
    of_ours = await account_of_a_business(bank)
    mine = await bank.open_account()

    found = await entries(bank)

    assert opened_accounts(found) == [None, mine.account_id]
    assert [one.account_id for one in waiting(found)] == [of_ours.id]


async def test_an_account_of_others_holds_up_no_event(bank: IncreaseLedgerBank) -> None:
    await open_account(bank.increase)
    mine = await bank.open_account()

    assert opened_accounts(await entries(bank)) == [None, mine.account_id]


async def test_an_account_that_was_taken_for_anothers_is_reported_once_onboarding_owns_it(
    bank: IncreaseLedgerBank,
) -> None:
    account = await open_account(bank.increase)
    await give_number(bank.increase, account)
    before = await entries(bank)
    bank.ownership.customers[account.id] = str(uuid.uuid4())
    await bank.increase.accounts.close(account.id)

    after = await entries(bank, cursor_of(before))

    assert opened_accounts(before) == [None]
    assert [entry.event.event_type.name for entry in after if entry.event] == ["account.closed"]


async def test_the_entity_of_an_account_of_others_is_read_once(bank: IncreaseLedgerBank) -> None:
    account = await open_account(bank.increase)
    await give_number(bank.increase, account)
    before = await entries(bank)
    await bank.increase.accounts.close(account.id)

    after = await entries(bank, cursor_of(before))

    assert [entry.event for entry in after] == [None]
    assert bank.running.bank.requests["GET /entities/{id}"] == 1


async def test_a_wire_of_an_account_of_others_is_not_read(bank: IncreaseLedgerBank) -> None:
    others = await open_account(bank.increase)
    debit_of_an_unknown_wire(bank, others.id)
    mine = await bank.open_account()

    found = await entries(bank)

    assert opened_accounts(found) == [None, mine.account_id]
    assert "GET /wire_transfers/{id}" not in bank.running.bank.requests


async def test_a_wire_that_the_bank_does_not_know_is_logged_as_such(
    bank: IncreaseLedgerBank,
) -> None:
    opened = await bank.open_account()
    debit_of_an_unknown_wire(bank, opened.account_id)
    before = await entries(bank)

    with capture_logs() as logs, pytest.raises(UndecodableEntry) as stopped:
        await entries(bank, cursor_of(before))

    assert stopped.value.entry.type == "transaction.created"
    [line] = [line for line in logs if line["log_level"] == "error"]
    assert (line["event"], line["wire_id"], line["account_id"]) == (
        "wire_of_a_posting_unknown_to_provider",
        "wire_transfer_unknown",
        opened.account_id,
    )


async def test_an_account_that_onboarding_owns_late_is_reported_from_its_opening_on(
    bank: IncreaseLedgerBank,
) -> None:
    account = await account_of_a_business(bank)
    numbers = await bank.increase.account_numbers.list(account_id=account.id)
    await bank.increase.simulations.inbound_wire_transfers.create(
        account_number_id=numbers.data[0].id, amount=100_000, debtor_name="Harbor Café"
    )
    early = waiting(await entries(bank))
    customer_id = bank.ownership.customers[account.id] = str(uuid.uuid4())
    [holder] = (await bank.ownership.holders(SERVICE, [account.id], soon())).values()

    assert bank.read_again is not None
    later = [await bank.read_again(one, holder, soon()) for one in early]

    events = [entry.event for entry in later if entry.event is not None]
    assert [event.event_type.name for event in events] == ["account.opened", "transaction.created"]
    assert {event.customer_id for event in events} == {customer_id}
    assert [entry.position for entry in later] == [one.position for one in early]


async def test_what_comes_after_an_entry_that_waits_waits_too(bank: IncreaseLedgerBank) -> None:
    account = await account_of_a_business(bank)
    early = await entries(bank)
    async with bank.database.transaction() as connection:
        await add_waiting(connection, waiting(early))
    bank.ownership.customers[account.id] = str(uuid.uuid4())
    await bank.increase.accounts.close(account.id)

    later = await entries(bank, cursor_of(early))

    assert [one.type for one in waiting(later)] == ["account.updated"]
    assert {one.customer_id for one in waiting(later)} == {
        one.customer_id for one in waiting(early)
    }


async def test_an_event_whose_object_cannot_be_read_stops_the_feed_at_its_place(
    bank: IncreaseLedgerBank, monkeypatch: pytest.MonkeyPatch
) -> None:
    await bank.open_funded_account()

    async def unreadable(*_: object) -> ListedTransaction:
        raise ProviderError from ValueError("of another shape")

    monkeypatch.setattr(FEED + ".get_transaction", unreadable)
    before = await entries(bank)
    with pytest.raises(UndecodableEntry) as stopped:
        await entries(bank, cursor_of(before))

    assert opened_accounts(before) != []
    at_fault = stopped.value.entry
    assert (at_fault.position, at_fault.type) == (len(before) + 1, "transaction.created")
    assert at_fault.provider_cursor is not None


async def test_while_an_object_cannot_be_asked_for_the_feed_gives_what_is_before_it(
    bank: IncreaseLedgerBank, monkeypatch: pytest.MonkeyPatch
) -> None:
    await bank.open_funded_account()

    async def away(*_: object) -> ListedTransaction:
        raise ProviderError from AttemptFailed(Failure.SERVER_ERROR, 500)

    monkeypatch.setattr(FEED + ".get_transaction", away)
    before = await entries(bank)
    with pytest.raises(ProviderError):
        await entries(bank, cursor_of(before))
    monkeypatch.undo()

    after = await entries(bank, cursor_of(before))

    assert opened_accounts(before) != []
    assert [entry.type for entry in after] == ["transaction.created"]


async def test_an_account_is_reported_as_opened_and_as_closed_as_it_was_then(
    bank: IncreaseLedgerBank,
) -> None:
    opened = await bank.open_account()
    await bank.increase.accounts.close(opened.account_id)

    found = await entries(bank)

    told = [
        (entry.event.event_type.name, data.status, data.close_date is None)
        for entry in found
        if entry.event is not None and isinstance(data := entry.event.data, AccountEventData)
    ]
    assert told == [("account.opened", "open", True), ("account.closed", "closed", False)]


def cursor_of(applied: list[FeedEntry]) -> FeedCursor:
    return (
        FeedCursor(applied[-1].position, applied[-1].provider_cursor) if applied else FeedCursor(0)
    )
