"""Balances against the sums of postings, over a bank in the test's own hand."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from decimal import Decimal

import pytest

from libs.persistence import cursor
from libs.persistence.async_engine import AsyncConnection
from libs.persistence.cursor import CursorMoved
from libs.persistence.engine import Database
from services.reconciliation.handlers.balances import BalanceComparison
from services.reconciliation.handlers.books import Books
from services.reconciliation.models import IN_FLIGHT, Finding
from services.reconciliation.ports import Balance, DepositLoad, Page, Posting
from services.reconciliation.repository import postings
from services.reconciliation.repository.postings import WirePostings
from tests.integration.reconciliation.runs import completed, listed
from tests.integration.tables import execute, rows
from tests.support.pace import pace
from tests.support.waiting import eventually

pytestmark = pytest.mark.asyncio(loop_scope="session")

PAGE = 2
ACCOUNT = "acc_1"
WAITING = (
    "SELECT 1 FROM pg_locks WHERE NOT granted AND pid IN"
    " (SELECT pid FROM pg_stat_activity WHERE datname = current_database())"
)

SIZES = "SELECT pg_relation_size('posted'), pg_relation_size('wire_debit'), pg_relation_size('return_posting')"
"""Rows that are deleted one by one stay in the tables' files until they are vacuumed."""


class FakeBank:
    """Postings of accounts, and their balances; see `ports.Financial` and `ports.ProviderList`."""

    requests_each = 0

    def __init__(self) -> None:
        self.postings: list[Posting] = []
        self.wrong = Decimal(0)
        """By so much each balance is not the sum of its postings."""
        self.meanwhile: Callable[[], None] = lambda: None
        """What happens before a balance is read."""
        self.before_postings: Callable[[], None] = lambda: None

    def post(self, amount: str, kind: str = "deposit", account_id: str = ACCOUNT) -> str:
        position = len(self.postings) + 1
        posting = Posting(position, f"t_{position}", account_id, Decimal(amount), kind)
        self.postings.append(posting)
        return posting.transaction_id

    async def postings_after(self, position: int, deadline: float) -> Sequence[Posting]:
        self.before_postings()
        return [one for one in self.postings if one.position > position][:PAGE]

    async def loads_after(self, position: int, deadline: float) -> Sequence[DepositLoad]:
        return []

    async def location_total(
        self, account_id: str, load_date: str, deadline: float
    ) -> tuple[int, Decimal]:
        return 0, Decimal(0)

    async def page(self, after: str | None, deadline: float) -> Page[Balance]:
        ids = sorted({posting.account_id for posting in self.postings})
        return Page(await self.by_ids(ids, deadline), None)

    async def by_ids(self, ids: Sequence[str], deadline: float) -> Sequence[Balance]:
        self.meanwhile()
        return [self._balance(one) for one in ids]

    async def of_customers(self, customer_ids: Sequence[str], deadline: float) -> Sequence[Balance]:
        return []

    def _balance(self, account_id: str) -> Balance:
        posted = [one for one in self.postings if one.account_id == account_id]
        total = sum((one.amount for one in posted), self.wrong)
        newest = max((one.position for one in posted), default=0)
        return Balance(account_id, total, total, Decimal(0), newest)


def soon() -> float:
    """A deadline."""
    return time.time() + 10 * pace()


async def debits_of(books: Books, *ids: str) -> dict[str, WirePostings]:
    debits, _ = await books.of_wires(ids, [], soon())
    return debits


async def look(database: Database, bank: FakeBank, *account_ids: str) -> list[Finding]:
    books = Books(database, bank, page_size=PAGE)
    comparison = BalanceComparison(books, bank, page_size=PAGE)
    found = await comparison.look(account_ids or (ACCOUNT,), soon())
    return list(found.values())


def fingerprints(finding: Finding) -> list[str]:
    assert isinstance(finding, list)
    return [one.fingerprint for one in finding]


async def test_a_balance_is_the_sum_of_postings_that_were_read_in_several_pages(
    database: Database,
) -> None:
    bank = FakeBank()
    for amount in ("10.00", "-3.00", "0.01", "5.00", "-1.00"):
        bank.post(amount)
    bank.post("7.00", account_id="acc_2")

    assert await look(database, bank, ACCOUNT, "acc_2") == [[], []]
    bank.post("1.00")
    assert await look(database, bank) == [[]]


async def test_the_scan_of_postings_ends_although_more_are_posted_all_the_time(
    database: Database,
) -> None:
    bank = FakeBank()
    for _ in range(PAGE):
        bank.post("10.00")
    comparison = BalanceComparison(Books(database, bank, page_size=PAGE), bank, page_size=PAGE)
    scan = comparison.scans["postings"]

    full = await scan(None, soon())

    def deposit() -> None:
        bank.post("1.00")

    bank.before_postings = deposit
    last = await scan(full.next_after, soon())

    assert (full.looked_at, full.next_after) == (PAGE, "more")
    assert (last.looked_at, last.next_after) == (1, None)


async def test_a_sum_has_room_for_more_than_the_largest_postings(database: Database) -> None:
    bank = FakeBank()
    for _ in range(PAGE):
        bank.post("999999999999999999.99")

    found = await look(database, bank)

    assert found == [[]]


async def test_a_balance_that_is_off_by_a_cent_is_a_difference(database: Database) -> None:
    bank = FakeBank()
    bank.post("10.00")
    bank.wrong = Decimal("0.01")

    [found] = await look(database, bank)

    assert isinstance(found, list)
    assert [(one.kind, one.subject) for one in found] == [("balance", ACCOUNT)]


async def test_a_balance_that_is_off_is_the_same_difference_after_further_postings(
    database: Database,
) -> None:
    bank = FakeBank()
    bank.post("10.00")
    bank.wrong = Decimal("0.01")

    [first] = await look(database, bank)
    bank.post("5.5")
    [second] = await look(database, bank)
    bank.wrong = Decimal("0.02")
    [third] = await look(database, bank)

    assert fingerprints(first) == fingerprints(second) != fingerprints(third)


async def test_a_balance_that_drifts_with_every_posting_is_listed(database: Database) -> None:
    bank = FakeBank()
    bank.post("10.00")
    bank.wrong = Decimal("5.00")

    def count_twice() -> None:
        bank.post("1.00")
        bank.wrong += Decimal("1.00")

    bank.before_postings = count_twice
    comparison = BalanceComparison(Books(database, bank, page_size=PAGE), bank, page_size=PAGE)

    run = await completed(database, comparison)

    assert (run.in_flight, [one.kind for one in await listed(database)]) == (0, ["balance"])


async def test_a_posting_between_the_two_readings_is_no_difference(database: Database) -> None:
    bank = FakeBank()
    bank.post("10.00")
    left = [1]

    def deposit_once() -> None:
        if left:
            bank.post(f"{left.pop()}.00")

    bank.meanwhile = deposit_once

    assert await look(database, bank) == [[]]


async def test_an_account_that_is_posted_to_all_the_time_is_in_flight(database: Database) -> None:
    bank = FakeBank()
    bank.post("10.00")

    def deposit() -> None:
        bank.post("1.00")

    bank.meanwhile = deposit

    assert await look(database, bank) == [IN_FLIGHT]


async def test_a_provider_whose_postings_went_back_is_a_difference(database: Database) -> None:
    bank = FakeBank()
    bank.post("10.00")
    bank.post("5.00")
    await look(database, bank)
    bank.postings.pop()

    [found] = await look(database, bank)

    assert isinstance(found, list)
    assert [one.kind for one in found] == ["postings_went_back"]


async def test_a_posting_that_is_numbered_from_below_the_bookmark_after_a_restore_is_a_difference(
    database: Database,
) -> None:
    bank = FakeBank()
    bank.post("10.00")
    for _ in range(3):
        bank.post("5.00", account_id="acc_2")
    await look(database, bank, ACCOUNT, "acc_2")
    del bank.postings[2:]
    bank.post("1.00")

    [found] = await look(database, bank)

    assert isinstance(found, list)
    assert [one.kind for one in found] == ["postings_went_back"]


async def test_debits_of_wires_are_counted_under_their_transaction_ids(database: Database) -> None:
    bank = FakeBank()
    bank.post("10.00")
    transaction_id = bank.post("-4.00", "wire")
    books = Books(database, bank, page_size=PAGE)

    first = await debits_of(books, transaction_id, "t_1")
    again = await debits_of(books, transaction_id, "t_1")

    counted = {transaction_id: WirePostings(transaction_id, 1, Decimal("-4.00"), ACCOUNT)}
    assert first == again == counted


async def test_returns_are_counted_under_transaction_ids_of_their_own(database: Database) -> None:
    bank = FakeBank()
    transaction_id = bank.post("4.00", "return")
    books = Books(database, bank, page_size=PAGE)

    debits = await debits_of(books, transaction_id)

    assert debits == {}
    assert (await books.of_wires([], [transaction_id], soon()))[1] == {
        transaction_id: WirePostings(transaction_id, 1, Decimal("4.00"), ACCOUNT)
    }


async def test_sums_to_which_the_release_before_has_added_are_made_anew(database: Database) -> None:
    bank = FakeBank()
    bank.post("10.00")
    await look(database, bank)
    transaction_id = bank.post("-4.00", "wire")
    await execute(
        database,
        "UPDATE posted SET total = 6, last_position = 2",
        f"INSERT INTO wire_debit (transaction_id, postings, amount) VALUES ('{transaction_id}', 1, -4)",
        "UPDATE feed_cursor SET position = 2 WHERE feed = 'postings'",
    )

    found = await look(database, bank)

    books = Books(database, bank, page_size=PAGE)
    [debit] = (await debits_of(books, transaction_id)).values()
    assert (found, debit.account_id) == ([[]], ACCOUNT)


async def test_money_that_came_in_by_wire_is_no_debit_of_a_wire(database: Database) -> None:
    bank = FakeBank()
    transaction_id = bank.post("25.00", "wire")
    books = Books(database, bank, page_size=PAGE)

    debits = await debits_of(books, transaction_id)

    assert debits == {}
    assert await look(database, bank) == [[]]


async def test_postings_that_are_added_while_sums_are_forgotten_are_not_counted_twice(
    database: Database,
) -> None:
    bank = FakeBank()
    bank.post("10.00")
    await look(database, bank)
    bank.post("5.00", account_id="acc_2")

    async def forget() -> None:
        async with database.transaction() as connection:
            await postings.forget(connection)

    async def is_waiting() -> bool:
        return bool(await rows(database, WAITING))

    async with database.transaction() as adding:
        await postings.add(adding, 1, bank.postings[1:])
        forgetting = asyncio.create_task(forget())
        await eventually("one waits for the other", is_waiting)
    await forgetting
    found = await look(database, bank, ACCOUNT, "acc_2")

    assert found == [[], []]


async def test_the_first_postings_that_are_added_while_sums_are_forgotten_are_kept_or_read_again(
    database: Database,
) -> None:
    bank = FakeBank()
    bank.post("10.00")

    async def forget() -> None:
        async with database.transaction() as connection:
            await postings.forget(connection)

    async def is_waiting() -> bool:
        return bool(await rows(database, WAITING))

    async with database.transaction() as adding:
        await postings.add(adding, 0, bank.postings)
        forgetting = asyncio.create_task(forget())
        await eventually("one waits for the other", is_waiting)
    await forgetting
    found = await look(database, bank)

    assert found == [[]]


async def test_sums_are_forgotten_without_a_look_at_each_of_them(database: Database) -> None:
    bank = FakeBank()
    bank.post("10.00")
    bank.post("-4.00", "wire")
    bank.post("4.00", "return")
    await look(database, bank)
    before = await rows(database, SIZES)

    async with database.transaction() as connection:
        await postings.forget(connection)
    after = await rows(database, SIZES)
    again = await look(database, bank)

    assert all(size > 0 for size in before[0])
    assert after == [(0, 0, 0)]
    assert again == [[]]


async def test_postings_from_before_the_sums_were_forgotten_are_not_added(
    database: Database,
) -> None:
    bank = FakeBank()
    bank.post("10.00")
    await look(database, bank)
    bank.post("5.00")
    async with database.transaction() as connection:
        await postings.forget(connection)

    with pytest.raises(CursorMoved):
        async with database.transaction() as connection:
            await postings.add(connection, 1, bank.postings[1:])

    assert await look(database, bank) == [[]]


class ReadAgain(FakeBank):
    """An operator has all postings read again while the bank lists new ones."""

    def __init__(self, database: Database) -> None:
        super().__init__()
        self.database = database
        self.is_asked_for = False

    async def postings_after(self, position: int, deadline: float) -> Sequence[Posting]:
        found = await super().postings_after(position, deadline)
        if self.is_asked_for:
            self.is_asked_for = False
            async with self.database.transaction() as connection:
                await postings.forget(connection)
        return found

    async def by_ids(self, ids: Sequence[str], deadline: float) -> Sequence[Balance]:
        return [self._balance(one) for one in ids if one != "closed"]


@pytest.mark.parametrize("more", [[], ["1.00"]], ids=["no new posting", "a new posting"])
async def test_sums_that_are_forgotten_while_they_are_brought_up_to_date_are_read_whole(
    database: Database, more: list[str]
) -> None:
    bank = ReadAgain(database)
    debit, credit = bank.post("-4.00", "wire"), bank.post("4.00", "return")
    bank.post("9.00", account_id="closed")
    books = Books(database, bank, page_size=PAGE)
    await look(database, bank)
    for amount in more:
        bank.post(amount)

    bank.is_asked_for = True
    debits, returns = await books.of_wires([debit], [credit], soon())
    bank.is_asked_for = True
    [of_account, of_closed_account] = await look(database, bank, ACCOUNT, "closed")

    assert (list(debits), list(returns), of_account) == ([debit], [credit], [])
    assert isinstance(of_closed_account, list)
    assert [one.kind for one in of_closed_account] == ["balance_missing"]


async def test_sums_that_another_process_completes_amid_a_look_are_read_whole(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    bank = FakeBank()
    for amount in ("100.00", "1.00"):
        bank.post(amount)
    debit = bank.post("-4.00", "wire")
    other, looking = (Books(database, bank, page_size=PAGE) for _ in range(2))
    await look(database, bank)
    read, caught_up, is_forgotten = cursor.read, looking._catch_up, False  # noqa: SLF001

    async def forget_and_begin_anew(deadline: float) -> int:
        nonlocal is_forgotten
        up_to = await caught_up(deadline)
        if not is_forgotten:
            is_forgotten = True
            async with database.transaction() as connection:
                await postings.forget(connection)
            await other.add_page(deadline)
        return up_to

    async def complete_and_read(connection: AsyncConnection, stream: str) -> int:
        await other.add_page(soon())
        return await read(connection, stream)

    monkeypatch.setattr(looking, "_catch_up", forget_and_begin_anew)
    monkeypatch.setattr(cursor, "read", complete_and_read)

    assert list(await debits_of(looking, debit)) == [debit]
