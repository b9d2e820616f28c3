"""Entries that waited for onboarding become events once it owns their accounts.

An account is opened at the bank before onboarding records whose it is: seconds before, or days when the opening waits
for an operator. Its entries wait meanwhile, and so do later ones of the account, so that its events keep their order.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import timedelta

import structlog
from prometheus_client import Gauge

from libs.contracts.errors import BanksideError, NotFound
from libs.contracts.ownership import AccountHolder
from libs.contracts.principal import SERVICE
from libs.gathering import gather_or_cancel
from libs.persistence.availability import is_away
from libs.providers.feed_entries import FETCH_SECONDS, describe
from libs.runtime.crash import crash_point
from services.ledger_read.handlers.feed_events import SKIPPED, FeedEvents
from services.ledger_read.models import FeedEntry
from services.ledger_read.ports import Ownership, ReadAgain
from services.ledger_read.waiting_entries import AlreadyReported, WaitingAccount, WaitingEntries

ACCOUNTS_AT_ONCE = 4
ENTRIES_AT_ONCE = 100
"""Of one account, reported together."""
OWNER_SECONDS = 10.0
GIVEN_UP_AFTER = timedelta(days=30)
"""An entry that could not be reported within this time is dropped, with an error in the log."""
TRIES_BEFORE = 300
"""An entry is dropped only after this many tries too, about a day of them. Otherwise a process that starts after a
month's outage would drop everything at once.
"""

WAITING = Gauge(
    "bankside_feed_waiting_accounts", "Accounts whose feed entries wait until onboarding owns them"
)


class WaitingAccounts:
    def __init__(
        self,
        waiting: WaitingEntries,
        ownership: Ownership,
        read_again: ReadAgain,
        events: FeedEvents,
        *,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._waiting = waiting
        self._ownership = ownership
        self._read_again = read_again
        self._events = events
        self._clock = clock
        self._log = structlog.get_logger("feed")

    async def report_due(self) -> None:
        """Try every account that is due. Raises what the database raises: the accounts are due again."""
        while await self._round():
            pass

    async def keep_house(self) -> None:
        """Make accounts due that a setback of the database's clock has put off, and count those that wait."""
        await self._waiting.hasten()
        WAITING.set(await self._waiting.count())

    async def _round(self) -> bool:
        """Whether there may be more."""
        accounts = await self._waiting.take(ACCOUNTS_AT_ONCE)
        if not accounts:
            return False
        ids = [account.account_id for account in accounts]
        try:
            holders = await self._ownership.holders(SERVICE, ids, self._clock() + OWNER_SECONDS)
        except BanksideError as error:
            self._log.warning("feed_entries_wait_for_onboarding", code=error.code)
            for account_id in ids:
                await self._waiting.postpone(account_id)
            return False
        await gather_or_cancel(
            (
                self.report_or_postpone(account, holders.get(account.account_id))
                for account in accounts
            ),
            name="waiting-account",
        )
        return len(accounts) == ACCOUNTS_AT_ONCE

    async def report_or_postpone(
        self, account: WaitingAccount, holder: AccountHolder | None
    ) -> None:
        """One account that was taken. Its entries are reported once, however many processes do this at one time."""
        try:
            if holder is None:
                await self._await_owner(account)
            else:
                await self._report(holder)
        except AlreadyReported:
            return
        except Exception as error:  # of any kind: the entry is kept, and other accounts go on
            if is_away(error):
                raise
            self._log.warning(
                "feed_entries_not_reported",
                account_id=account.account_id,
                problem=describe("tried again later", error),
            )
            await self._postpone(account, "not_reported")

    async def _await_owner(self, account: WaitingAccount) -> None:
        try:
            owner = await self._ownership.customer(
                SERVICE, account.customer_id, self._clock() + OWNER_SECONDS
            )
            is_final = owner.is_final
        except NotFound:
            is_final = False  # a database that went back may yet get its customer again
        if not is_final:
            await self._postpone(account, "never_owned")
            return
        # Asked once more: it may have got the account since, and have become final. From here on it gets none.
        holders = await self._ownership.holders(
            SERVICE, [account.account_id], self._clock() + OWNER_SECONDS
        )
        if account.account_id in holders:
            await self._report(holders[account.account_id])
            return
        given_up = await self._waiting.give_up(account.account_id)
        SKIPPED.labels("customer_final").inc(given_up)
        self._log.info(
            "feed_entries_of_final_customer", account_id=account.account_id, count=given_up
        )

    async def _postpone(self, account: WaitingAccount, reason: str) -> None:
        if account.tries >= TRIES_BEFORE:
            given_up = await self._waiting.give_up(account.account_id, GIVEN_UP_AFTER)
            if given_up:
                SKIPPED.labels(reason).inc(given_up)
                self._log.error(
                    "feed_entries_given_up",
                    account_id=account.account_id,
                    reason=reason,
                    count=given_up,
                )
        await self._waiting.postpone(account.account_id)

    async def _report(self, holder: AccountHolder) -> None:
        account_id = holder.account_id
        begun = self._clock()
        entries: list[FeedEntry] = []
        for waiting in await self._waiting.entries(account_id, ENTRIES_AT_ONCE):
            try:
                entries.append(await self._read_again(waiting, holder, begun + FETCH_SECONDS))
            except Exception:  # those before it are reported; it is met again as the first one
                if not entries:
                    raise
                break
            if self._clock() > begun + FETCH_SECONDS / 2:
                break
        record = await self._events.prepare(entries)
        positions = [entry.position for entry in entries]
        async with self._waiting.removing(account_id, positions) as connection:
            await record(connection)
            crash_point("feed.waiting.before_commit")
        crash_point("feed.waiting.after_commit")
