"""Entries of the feed about accounts that onboarding does not own yet: stored, and reported once it does."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest
import pytest_asyncio

from libs.contracts.accounts import AccountEventData
from libs.contracts.errors import Unavailable
from libs.contracts.events import EVENT_TYPES
from libs.contracts.ownership import AccountHolder
from libs.persistence.engine import Database, open_database
from services.ledger_read import waiting_entries
from services.ledger_read.adapters.ownership import OnboardingOwnership
from services.ledger_read.handlers import waiting_accounts
from services.ledger_read.handlers.feed_events import FeedEvents
from services.ledger_read.handlers.waiting_accounts import WaitingAccounts
from services.ledger_read.models import FeedEntry, ReportedEvent, WaitingEntry
from services.ledger_read.waiting_entries import WaitingEntries
from tests.integration.tables import execute, rows
from tests.support.infrastructure import Environment
from tests.unit.ledger_read.fakes import Onboarding

KINDS = {"account.created": "account.opened", "account.updated": "account.closed"}


class Feed:
    """One process's part of the feed. `unreadable`: the accounts whose objects cannot be read."""

    def __init__(self, database: Database, onboarding: Onboarding) -> None:
        self.database = database
        self.onboarding = onboarding
        self.unreadable: set[str] = set()
        ownership = OnboardingOwnership(self.onboarding, patience_seconds=1, remembered=9)
        self._events = FeedEvents(ownership)
        self.store = WaitingEntries(database)
        self.waiting = WaitingAccounts(self.store, ownership, self._read_again, self._events)

    async def note(self, account_id: str, position: int, kind: str = "account.created") -> None:
        await self.apply(FeedEntry(position, kind, None, waiting=entry(account_id, position, kind)))

    async def apply(self, *entries: FeedEntry) -> None:
        record = await self._events.prepare(entries)
        async with self.database.transaction() as connection:
            await record(connection)

    def own(self, account_id: str) -> None:
        self.onboarding.accounts[account_id] = ("t_1", customer_of(account_id))

    async def due(self) -> None:
        """Have every account tried now."""
        await execute(self.database, "UPDATE waiting_account SET due_at = '-infinity'")
        await self.waiting.report_due()

    async def told(self, account_id: str) -> list[tuple[str, int]]:
        found = await rows(
            self.database,
            "SELECT type, sequence FROM outbox WHERE resource_id = :account_id ORDER BY id",
            account_id=account_id,
        )
        return [(row.type, row.sequence) for row in found]

    async def _read_again(self, one: WaitingEntry, holder: AccountHolder, _: float) -> FeedEntry:
        if one.account_id in self.unreadable:
            raise ValueError("of another shape")
        kind = KINDS[one.type]
        data = AccountEventData(
            id=one.account_id,
            account_number="9012",
            account_group="deposit",
            account_title="Acme",
            name="Acme",
            dba_name=None,
            status="open",
            interest_earned_year_to_date=Decimal(0),
            annual_percentage_yield_earned=Decimal(0),
            is_restricted=False,
            close_date=None,
            customer_id=holder.customer_id,
        )
        event = ReportedEvent(
            EVENT_TYPES[kind], holder.customer_id, one.account_id, one.occurred_at, data, kind
        )
        return FeedEntry(one.position, one.type, event, event_id=one.event_id)


def customer_of(account_id: str) -> str:
    return str(uuid.uuid5(uuid.NAMESPACE_OID, account_id))


def entry(account_id: str, position: int, kind: str) -> WaitingEntry:
    return WaitingEntry(
        account_id=account_id,
        customer_id=customer_of(account_id),
        position=position,
        event_id=f"event_{position}",
        type=kind,
        object_id=account_id,
        occurred_at=datetime.now(UTC),
    )


@pytest_asyncio.fixture
async def feed(fresh_environment: Environment) -> AsyncIterator[Feed]:
    database = open_database(fresh_environment.database_urls["ledger_read"], "tests")
    yield Feed(database, Onboarding())
    await database.close()


async def test_entries_are_reported_in_their_order_once_onboarding_owns_the_account(
    feed: Feed,
) -> None:
    await feed.note("a_1", 1)
    await feed.waiting.report_due()
    await feed.note("a_1", 2, "account.updated")
    before = await feed.told("a_1")

    feed.own("a_1")
    await feed.due()
    await feed.due()

    assert before == []
    assert await feed.told("a_1") == [("account.opened", 1), ("account.closed", 2)]
    assert await feed.store.customer_of("a_1") is None
    assert await rows(feed.database, "SELECT position FROM waiting_entry") == []


async def test_an_account_that_waits_since_before_the_clock_was_set_back_is_tried_now(
    feed: Feed,
) -> None:
    await feed.note("a_1", 1)
    await feed.note("a_2", 2)
    feed.own("a_1")
    feed.own("a_2")
    await execute(
        feed.database,
        "UPDATE waiting_account SET due_at = now() + interval '2 hours' WHERE account_id = 'a_1'",
        "UPDATE waiting_account SET due_at = now() + interval '5 minutes' WHERE account_id = 'a_2'",
    )

    await feed.waiting.keep_house()
    await feed.waiting.report_due()

    assert (await feed.told("a_1"), await feed.told("a_2")) == ([("account.opened", 1)], [])


async def test_two_processes_report_an_entry_once(feed: Feed) -> None:
    other = Feed(feed.database, feed.onboarding)
    await feed.note("a_1", 1)
    feed.own("a_1")
    [account] = await feed.store.take(1)
    holder = AccountHolder(
        account_id="a_1", customer_id=customer_of("a_1"), business_name="Acme", dba=None
    )

    # As when the first one stood still for longer than its lease.
    await asyncio.gather(
        *(process.waiting.report_or_postpone(account, holder) for process in (feed, other)),
    )

    assert await feed.told("a_1") == [("account.opened", 1)]


async def test_an_entry_that_comes_while_others_are_reported_goes_on_waiting_until_it_is_due(
    feed: Feed,
) -> None:
    await feed.note("a_1", 1)
    async with feed.store.removing("a_1", [1]):
        noting = asyncio.create_task(feed.note("a_1", 2, "account.updated"))
        await asyncio.wait({noting}, timeout=0.2)
        was_waiting = not noting.done()
    await noting

    feed.own("a_1")
    await feed.due()

    assert was_waiting
    assert await feed.told("a_1") == [("account.closed", 1)]


async def test_what_fails_before_its_commit_is_reported_later(
    feed: Feed, monkeypatch: pytest.MonkeyPatch
) -> None:
    def die(name: str) -> None:
        if name == "feed.waiting.before_commit":
            raise ValueError(name)

    await feed.note("a_1", 1)
    feed.own("a_1")
    with monkeypatch.context() as patch:
        patch.setattr(waiting_accounts, "crash_point", die)
        await feed.due()
    before = await feed.told("a_1")

    await feed.due()

    assert (before, await feed.told("a_1")) == ([], [("account.opened", 1)])


async def test_an_account_whose_entry_cannot_be_read_holds_up_no_other(feed: Feed) -> None:
    await feed.note("a_1", 1)
    await feed.note("a_2", 2)
    feed.own("a_1")
    feed.own("a_2")
    feed.unreadable = {"a_1"}

    await feed.due()

    assert (await feed.told("a_1"), await feed.told("a_2")) == ([], [("account.opened", 1)])
    assert await feed.store.customer_of("a_1") == customer_of("a_1")


@pytest.mark.parametrize("is_known", [True, False])
async def test_entries_wait_while_their_customer_may_yet_get_its_account(
    feed: Feed, is_known: bool
) -> None:
    if is_known:
        feed.onboarding.customers[customer_of("a_1")] = False
    await feed.note("a_1", 1)
    await execute(feed.database, "UPDATE waiting_account SET tries = 290")
    await execute(
        feed.database, "UPDATE waiting_entry SET noted_at = noted_at - interval '40 days'"
    )

    await feed.due()

    assert await feed.store.customer_of("a_1") == customer_of("a_1")


async def test_entries_of_a_customer_that_gets_no_account_are_given_up(feed: Feed) -> None:
    feed.onboarding.customers[customer_of("a_1")] = True
    await feed.note("a_1", 1)

    await feed.due()

    assert await feed.store.count() == 0
    assert await rows(feed.database, "SELECT position FROM waiting_entry") == []


async def test_after_thirty_days_of_tries_the_old_entries_are_given_up(feed: Feed) -> None:
    await feed.note("a_1", 1)
    await execute(
        feed.database, "UPDATE waiting_entry SET noted_at = noted_at - interval '31 days'"
    )
    await feed.note("a_1", 2, "account.updated")
    await execute(feed.database, "UPDATE waiting_account SET tries = 8000")

    await feed.due()

    left = await feed.store.entries("a_1", 10)
    assert [one.position for one in left] == [2]


async def test_while_onboarding_is_away_everything_waits(feed: Feed) -> None:
    await feed.note("a_1", 1)
    await execute(feed.database, "UPDATE waiting_account SET tries = 8000")
    feed.own("a_1")
    feed.onboarding.failure = Unavailable()

    await feed.due()
    feed.onboarding.failure = None
    await feed.due()

    assert await feed.told("a_1") == [("account.opened", 1)]


async def test_an_account_is_asked_about_less_and_less_often(feed: Feed) -> None:
    await feed.note("a_1", 1)
    tries: list[tuple[datetime, datetime, datetime]] = []
    for _ in range(12):
        [before] = await rows(feed.database, "SELECT clock_timestamp()")
        await feed.due()
        [after] = await rows(
            feed.database, "SELECT clock_timestamp() AS now, due_at FROM waiting_account"
        )
        tries.append((before[0], after.now, after.due_at))

    longest = waiting_entries.LONGEST_PAUSE_SECONDS
    pauses = [timedelta(seconds=min(0.5 * 2**tried, longest)) for tried in range(len(tries))]
    assert pauses[-1].total_seconds() == longest
    for pause, (before_it, after_it, due_at) in zip(pauses, tries, strict=True):
        assert before_it + pause <= due_at <= after_it + pause
