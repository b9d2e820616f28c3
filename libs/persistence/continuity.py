"""Detecting that this database lost commits: it was restored from a backup, or failed over to a standby that lagged.

Such a database has gone back: it lacks writes that a provider carried out, and would send them again as if for the
first time. A *life* of the database server is the time from one start of its postmaster to the next. Each life is
checked before it is trusted: since every intent is committed before it is sent, the newest records that the providers
have of ours must be in the database. A missing record opens a *case*, which an operator closes. While the life is not
checked, or a case is open, the service looks each write up at the provider before its first send
(`lost_history_seconds()` of its schema is not null; `released_ddl` has the function).

The check waits until no write of an earlier life can reach the providers any more. It reads their records back to one
that was final in a life that is trusted. Failovers happen without an operator, so the check does not rely on one;
`declare` is for an operator who restored a database.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import NoReturn, Protocol

import structlog
from prometheus_client import Gauge

from libs.contracts.errors import BanksideError
from libs.persistence import database_life as statements
from libs.persistence.async_engine import AsyncConnection
from libs.persistence.availability import is_away
from libs.persistence.engine import Database

CHECK_SECONDS = 1.0
REPORT_SECONDS = 10.0
"""How long one process has for a report: longer than its request takes. After that any process repeats it."""
PAGE = 500
PAGES = 200
"""The most that are read of one provider's records. With more of them since the last life that was checked, the present
life stays unchecked.
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
        went_back: reports a case that was opened, within `REPORT_SECONDS`. It is called again, by any process, until it
            returns without an error.
    """

    def __init__(
        self,
        database: Database,
        sources: Sequence[NewestRecords],
        *,
        transit_seconds: float,
        went_back: Callable[[], Awaitable[None]] | None = None,
    ) -> None:
        self._database = database
        self._sources = sources
        self._transit_seconds = transit_seconds
        self._went_back = went_back
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
        """Check the present life, unless it is checked or the check is too early.

        Raises:
            BanksideError: a provider gave no usable answer.
        """
        async with self._database.transaction() as connection:
            await connection.execute(statements.SEE)
            life = (
                await connection.execute(
                    statements.LIFE, {"transit": timedelta(seconds=self._transit_seconds)}
                )
            ).one()
            WENT_BACK.set(bool((await connection.execute(statements.OPEN)).first()))
        UNCHECKED.set(not life.is_checked)
        is_report_due = life.is_report_due
        if not life.is_checked and life.is_settled:
            # The lives since the last one that was checked are doubted as well, and others may have written in a life
            # before it was first seen.
            trusted_until = life.doubted_since - timedelta(seconds=self._transit_seconds)
            is_report_due |= await self._compare(life.started_at, trusted_until)
        if is_report_due and self._went_back is not None:
            await self._report(self._went_back)

    async def _report(self, went_back: Callable[[], Awaitable[None]]) -> None:
        claim = {"claim": timedelta(seconds=REPORT_SECONDS)}
        async with self._database.transaction() as connection:
            claimed = (await connection.execute(statements.CLAIM_REPORT, claim)).scalars().first()
        if claimed is None:
            return  # another process reports it
        await went_back()
        async with self._database.transaction() as connection:
            await connection.execute(statements.REPORTED, {"claimed": claimed})

    async def _compare(self, started_at: datetime, trusted_until: datetime) -> bool:
        """Whether records are missing that were not missed before."""
        missing: list[str] = []
        for source in self._sources:
            found = await self._missing(source, trusted_until)
            if found is None:
                self._log.error("continuity_not_checked", provider=source.provider, pages=PAGES)
                return False
            missing += [f"{source.provider}: {record}" for record in found]
        async with self._database.transaction() as connection:
            # A server that took over meanwhile has another life, and is compared by itself.
            recorded = await connection.execute(
                statements.RECORD, {"missing": missing, "life": started_at}
            )
            new: list[str] = recorded.scalar_one_or_none() or []
        if new:
            WENT_BACK.set(1)
            self._log.error("database_went_back", records=len(new), first=new[0])
        return bool(new)

    async def _missing(self, source: NewestRecords, trusted_until: datetime) -> list[str] | None:
        """Records that the provider has and the database lacks; None when they are not known after `PAGES` pages."""
        missing: list[str] = []
        after: str | None = None
        for _ in range(PAGES):
            page = await source.fetch(after, PAGE)
            async with self._database.transaction() as connection:
                compared = await source.compare(connection, page.ids, trusted_until)
            missing += compared.missing
            if compared.reaches_back or page.next is None:
                return missing
            after = page.next
        return None


async def open_cases(connection: AsyncConnection) -> list[WentBack]:
    """The cases that no operator has closed."""
    rows = await connection.execute(statements.OPEN)
    return [WentBack(*row) for row in rows]


async def declare(connection: AsyncConnection, why: str) -> None:
    """Record an operator's word that the database went back: it is checked again, and a case is open."""
    await connection.execute(statements.DECLARE, {"records": [why]})


async def close(connection: AsyncConnection, *, by: str, reason: str) -> Sequence[int]:
    """Close the open cases by an operator's decision; of each, how many records were missing."""
    closed = await connection.execute(statements.CLOSE, {"by": by, "why": reason})
    return list(closed.scalars())
