"""Detecting that this database lost commits: it was restored from a backup, or failed over to a standby that lagged.

Such a database has gone back: it lacks writes that a provider carried out, and would send them again as if for the
first time. A *life* of the database server is the time from one start of its postmaster to the next. Each life is
checked before it is trusted: since every intent is committed before it is sent, the newest records that the providers
have of ours must be in the database. A missing record opens a *case*, which an operator closes. While the life is not
checked, or a case is open, the service looks each write up at the provider before its first send
(`lost_history_seconds()` of its schema is not null; `released_ddl` has the function).

A service may restore a lost record before the check looks for it, as when it looks a write up and finds it at the
provider. It records that the record was missing (`note_missing`) with that commit, or before it.

The check waits until no write of an earlier life can reach the providers any more. It reads their records back to one
that was final in a life that is trusted. Failovers happen without an operator, so the check does not rely on one;
`declare` is for an operator who restored a database.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Collection, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import NamedTuple, NoReturn, Protocol

import structlog
from prometheus_client import Gauge

from libs.backoff import Backoff
from libs.contracts.errors import BanksideError
from libs.persistence import clock_setbacks
from libs.persistence import database_life as statements
from libs.persistence.async_engine import AsyncConnection
from libs.persistence.availability import is_away
from libs.persistence.clock_setbacks import DateBack
from libs.persistence.engine import Database

CHECK_SECONDS = 1.0
REPORT_SECONDS = 10.0
"""How long one process has for a report: longer than its request takes. After that any process repeats it."""
PAGE = 500
PAGES = 200
"""The most that one pass reads of a provider's records. With more of them since the last life that was checked, the
next pass goes on where this one ended.
"""
PASSES = Backoff(first_seconds=1.0, longest_seconds=60.0, jitter=0.2)
"""After a pass that failed, or read `PAGES`."""
PLACE_TRIES = 10
"""So many passes in a row that get no page from the place where the one before ended. The next begins at the newest
record: the provider may not know that place any more.
"""

UNCHECKED = Gauge(
    "bankside_database_unchecked",
    "1 while the present life of the database server was not compared with the providers",
)
WENT_BACK = Gauge(
    "bankside_database_went_back",
    "1 while this database lacks records that a provider holds and no operator has closed the case",
)


class Page(Protocol):
    """Ids of ours that a provider has, the newest first. `next`: where the following page begins, if any."""

    @property
    def ids(self) -> Sequence[str]: ...

    @property
    def next(self) -> str | None: ...


@dataclass(frozen=True, slots=True)
class Compared:
    """A page compared with the database.

    Args:
        missing: ids of which the database lacks the record, or that it was sent.
        reaches_back: the page has a record that was final in a life that is trusted.
    """

    missing: Sequence[str]
    reaches_back: bool


Compare = Callable[[AsyncConnection, Sequence[str], datetime], Awaitable[Compared]]
"""Compares a page of ids with the database. Last argument: what was final before it is of a life that is trusted."""


@dataclass(frozen=True, slots=True)
class NewestRecords:
    """One provider's list of our records.

    Args:
        fetch: (after, limit) -> a page. Raises BanksideError: there is no usable answer.
    """

    provider: str
    fetch: Callable[[str | None, int], Awaitable[Page]]
    compare: Compare


class _Doubted(NamedTuple):
    """What a comparison is about. It begins anew with another life, and when an operator declares a restore: what was
    in the database before may be missing now.
    """

    started_at: datetime
    first_seen_at: datetime
    missing: int
    """How many records are known to be missing."""
    trusted_until: datetime


class _Walk:
    """How far back one provider's records were compared."""

    def __init__(self, source: NewestRecords) -> None:
        self.source = source
        self.after: str | None = None
        self.missing: dict[str, None] = {}
        self.is_over = False
        self.vain_tries = 0
        """Passes in a row that got no page."""


class _Comparison:
    """The comparison of the present life with the providers, which may take several passes."""

    def __init__(self, doubted: _Doubted, sources: Sequence[NewestRecords]) -> None:
        self.doubted = doubted
        self.walks = [_Walk(source) for source in sources]
        self._passes = 0
        self._not_before = 0.0

    @property
    def is_due(self) -> bool:
        return time.monotonic() >= self._not_before

    @property
    def is_over(self) -> bool:
        return all(walk.is_over for walk in self.walks)

    def pause(self) -> None:
        """After a pass that was not the last one."""
        self._passes += 1
        self._not_before = time.monotonic() + PASSES.pause_seconds(self._passes)


@dataclass(frozen=True, slots=True)
class WentBack:
    """An open case: records that were found missing in one life of the database server, and in none before it."""

    started_at: datetime
    first_seen_at: datetime
    missing_records: Sequence[str]


class Continuity:
    """Checks each life of one service's database.

    Args:
        transit_seconds: how long after this life was first seen a write of an earlier life may still take effect.
        on_checked: called in the transaction in which a life is recorded as checked, with no record missing that
            was not recorded as missing before.
        went_back: reports a case that was opened, within `REPORT_SECONDS`. It is called again, by any process, until it
            returns without an error.
        date_back: dates the times of sends back after a setback of the database's clock (`clock_setbacks`).
    """

    def __init__(
        self,
        database: Database,
        sources: Sequence[NewestRecords],
        *,
        transit_seconds: float,
        on_checked: Callable[[AsyncConnection], Awaitable[None]] | None = None,
        went_back: Callable[[], Awaitable[None]] | None = None,
        date_back: DateBack | None = None,
    ) -> None:
        self._database = database
        self._sources = sources
        self._transit_seconds = transit_seconds
        self._on_checked = on_checked
        self._went_back = went_back
        self._date_back = date_back
        self._comparison: _Comparison | None = None
        self._log = structlog.get_logger("continuity")

    async def watch(self) -> NoReturn:
        """Check the present life, and each one that follows, for ever."""
        while True:
            try:
                await self.check()
            except BanksideError as error:
                self._log.warning("continuity_not_checked", error=error.code)
            except Exception as error:
                if not is_away(error):
                    raise
                self._log.warning("database_away")
            await asyncio.sleep(CHECK_SECONDS)

    async def check(self) -> None:
        """Check the present life, unless it is checked, or the check is too early, or it is too soon for another pass.

        Raises:
            BanksideError: a provider gave no usable answer.
        """
        async with self._database.transaction() as connection:
            await statements.see(connection)
            setback = await clock_setbacks.follow(connection, self._date_back)
            life = (
                await connection.execute(
                    statements.LIFE, {"transit": timedelta(seconds=self._transit_seconds)}
                )
            ).one()
            WENT_BACK.set(bool((await connection.execute(statements.OPEN)).first()))
        if setback is not None:
            clock_setbacks.report(setback)
        if life.are_commands_put_off:
            await self._bring_commands_forward()
        UNCHECKED.set(not life.is_checked)
        is_report_due = life.is_report_due
        if not life.is_checked and life.is_settled:
            # The lives since the last one that was checked are doubted as well, and others may have written in a life
            # before it was first seen.
            trusted_until = life.doubted_since - timedelta(seconds=self._transit_seconds)
            is_report_due |= await self._compare(
                _Doubted(life.started_at, life.first_seen_at, life.missing, trusted_until)
            )
        elif life.is_checked:
            self._comparison = None
        if is_report_due and self._went_back is not None:
            await self._report(self._went_back)

    async def _bring_commands_forward(self) -> None:
        more = True
        while more:
            async with self._database.transaction() as connection:
                more = await clock_setbacks.bring_forward(connection)

    async def _report(self, went_back: Callable[[], Awaitable[None]]) -> None:
        claim = {"claim": timedelta(seconds=REPORT_SECONDS)}
        async with self._database.transaction() as connection:
            claimed = (await connection.execute(statements.CLAIM_REPORT, claim)).scalars().first()
        if claimed is None:
            return  # another process reports it
        try:
            await went_back()
        except BanksideError as error:
            self._log.warning("restore_not_reported", error=error.code)
            return  # it is due again once the claim is over
        async with self._database.transaction() as connection:
            await connection.execute(statements.REPORTED, {"claimed": claimed})

    async def _compare(self, doubted: _Doubted) -> bool:
        """Whether records are missing that were not recorded as missing before."""
        if self._comparison is None or self._comparison.doubted != doubted:
            self._comparison = _Comparison(doubted, self._sources)
        comparison = self._comparison
        if not comparison.is_due:
            return False
        try:
            await self._pass(comparison)
        finally:
            if not comparison.is_over:
                comparison.pause()
        return comparison.is_over and await self._conclude(comparison)

    async def _pass(self, comparison: _Comparison) -> None:
        for walk in comparison.walks:
            if not walk.is_over:
                await self._go_on(walk, comparison.doubted.trusted_until)
            if not walk.is_over:
                self._log.warning(
                    "continuity_not_checked", provider=walk.source.provider, pages=PAGES
                )
                return

    async def _go_on(self, walk: _Walk, trusted_until: datetime) -> None:
        """Compare the next pages: until the walk is over, but `PAGES` at most."""
        walk.vain_tries += 1
        if walk.vain_tries > PLACE_TRIES:
            walk.after = None
        for _ in range(PAGES):
            page = await walk.source.fetch(walk.after, PAGE)
            async with self._database.transaction() as connection:
                compared = await walk.source.compare(connection, page.ids, trusted_until)
            walk.missing.update(dict.fromkeys(compared.missing))
            walk.after = page.next
            walk.vain_tries = 0
            walk.is_over = compared.reaches_back or page.next is None
            if walk.is_over:
                return

    async def _conclude(self, comparison: _Comparison) -> bool:
        """Record what is missing, and that the life is checked. Whether any was not recorded as missing before."""
        missing = [
            f"{walk.source.provider}: {record}"
            for walk in comparison.walks
            for record in walk.missing
        ]
        doubted = comparison.doubted
        async with self._database.transaction() as connection:
            locked = await connection.execute(statements.LOCK, {"life": doubted.started_at})
            present = locked.one_or_none()
            if present is None:
                # A server that took over meanwhile has another life, and is compared by itself.
                return False
            # A restore that an operator declared meanwhile is compared anew: rows that were there may be gone since.
            is_as_read = tuple(present) == (doubted.first_seen_at, doubted.missing)
            recording = statements.RECORD if is_as_read else statements.ADD_MISSING
            recorded = await connection.execute(recording, {"missing": missing})
            new: list[str] = recorded.scalar_one()
            if is_as_read and not new and self._on_checked is not None:
                await self._on_checked(connection)
        if new:
            WENT_BACK.set(1)
            self._log.error("database_went_back", records=len(new), first=new[0])
        return bool(new)


async def open_cases(connection: AsyncConnection) -> list[WentBack]:
    """The cases that no operator has closed."""
    rows = await connection.execute(statements.OPEN)
    return [WentBack(*row) for row in rows]


async def note_missing(
    connection: AsyncConnection, provider: str, records: Collection[str]
) -> None:
    """Record that the database lacks records of a provider, which this transaction or one after it restores. A case
    is open then, unless they were recorded as missing before.
    """
    await statements.see(connection)
    missing = [f"{provider}: {record}" for record in records]
    added = await connection.execute(statements.ADD_MISSING, {"missing": missing})
    new: list[str] = added.scalar_one()
    if new:
        structlog.get_logger("continuity").error(
            "database_went_back", records=len(new), first=new[0]
        )


async def declare(connection: AsyncConnection, why: str) -> None:
    """Record an operator's word that the database went back: it is checked again, and a case is open."""
    await connection.execute(statements.DECLARE, {"records": [why]})


async def close(connection: AsyncConnection, *, by: str, reason: str) -> Sequence[int]:
    """Close the open cases by an operator's decision; of each, how many records were missing."""
    closed = await connection.execute(statements.CLOSE, {"by": by, "why": reason})
    return list(closed.scalars())
