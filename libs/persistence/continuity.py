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
from sqlalchemy import (
    Interval,
    Text,
    and_,
    bindparam,
    case,
    except_,
    func,
    null,
    or_,
    select,
    update,
)
from sqlalchemy.dialects.postgresql import ARRAY, array, insert

from libs.contracts.errors import BanksideError
from libs.persistence.async_engine import AsyncConnection
from libs.persistence.availability import is_away
from libs.persistence.engine import Database
from libs.persistence.tables import database_life as table

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

_PRESENT = table.c.started_at == func.pg_postmaster_start_time()
_NO_RECORDS = array([], type_=Text)
_IS_OPEN = and_(table.c.missing_records != _NO_RECORDS, table.c.closed_at.is_(None))
_SEE = (
    insert(table)
    .values(started_at=func.pg_postmaster_start_time())
    .on_conflict_do_update(
        index_elements=[table.c.started_at], set_={"last_seen_at": func.clock_timestamp()}
    )
)
_IS_DUE = table.c.report_due_at <= func.clock_timestamp()
_other, _trusted = table.alias("other"), table.alias("trusted")
_NEWEST_TRUSTED = (
    select(func.max(_trusted.c.first_seen_at))
    .where(_trusted.c.checked_at.is_not(None))
    .scalar_subquery()
)
_DOUBTED_SINCE = (
    select(func.min(_other.c.first_seen_at))
    .where(
        _other.c.checked_at.is_(None),
        or_(_NEWEST_TRUSTED.is_(None), _other.c.first_seen_at > _NEWEST_TRUSTED),
    )
    .scalar_subquery()
)
_LIFE = select(
    table.c.started_at,
    func.least(table.c.first_seen_at, _DOUBTED_SINCE).label("doubted_since"),
    table.c.checked_at.is_not(None).label("is_checked"),
    (table.c.first_seen_at + bindparam("transit", type_=Interval) <= func.clock_timestamp()).label(
        "is_settled"
    ),
    select(table.c.started_at).where(_IS_DUE).correlate(None).exists().label("is_report_due"),
).where(_PRESENT)
_NEWLY_MISSING = except_(
    select(func.unnest(bindparam("missing", type_=ARRAY(Text))).label("record")),
    select(func.unnest(table.c.missing_records)),
).subquery()
_FOUND = select(
    func.coalesce(func.array_agg(_NEWLY_MISSING.c.record), _NO_RECORDS, type_=ARRAY(Text)).label(
        "records"
    )
).cte("found")
_RECORDS = select(_FOUND.c.records).scalar_subquery()
_RECORD = (
    update(table)
    .where(_PRESENT, table.c.started_at == bindparam("life"))
    .values(
        checked_at=func.clock_timestamp(),
        missing_records=table.c.missing_records + _RECORDS,
        closed_at=case((_RECORDS == _NO_RECORDS, table.c.closed_at)),
        # With the case itself: this process may end before it has reported it.
        report_due_at=case(
            (_RECORDS == _NO_RECORDS, table.c.report_due_at), else_=func.clock_timestamp()
        ),
    )
    .returning(_RECORDS)
)
_CLAIM_REPORT = (
    update(table)
    .where(_IS_DUE)
    .values(report_due_at=func.now() + bindparam("claim", type_=Interval))
    .returning(table.c.report_due_at)
)
_REPORTED = (
    update(table).where(table.c.report_due_at == bindparam("claimed")).values(report_due_at=null())
)
_OPEN = (
    select(table.c.started_at, table.c.first_seen_at, table.c.missing_records)
    .where(_IS_OPEN)
    .order_by(table.c.started_at)
)
_DECLARED = insert(table).values(
    started_at=func.pg_postmaster_start_time(), missing_records=bindparam("records")
)
_DECLARE = _DECLARED.on_conflict_do_update(
    index_elements=[table.c.started_at],
    set_={
        "checked_at": null(),
        "missing_records": table.c.missing_records + _DECLARED.excluded.missing_records,
        "closed_at": null(),
        "closed_by": null(),
        "reason": null(),
    },
)
_CLOSE = (
    update(table)
    .where(_IS_OPEN)
    .values(closed_at=func.clock_timestamp(), closed_by=bindparam("by"), reason=bindparam("why"))
    .returning(func.cardinality(table.c.missing_records))
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
            await connection.execute(_SEE)
            life = (
                await connection.execute(
                    _LIFE, {"transit": timedelta(seconds=self._transit_seconds)}
                )
            ).one()
            WENT_BACK.set(bool((await connection.execute(_OPEN)).first()))
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
            claimed = (await connection.execute(_CLAIM_REPORT, claim)).scalars().first()
        if claimed is None:
            return  # another process reports it
        await went_back()
        async with self._database.transaction() as connection:
            await connection.execute(_REPORTED, {"claimed": claimed})

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
            recorded = await connection.execute(_RECORD, {"missing": missing, "life": started_at})
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
    rows = await connection.execute(_OPEN)
    return [WentBack(*row) for row in rows]


async def declare(connection: AsyncConnection, why: str) -> None:
    """Record an operator's word that the database went back: it is checked again, and a case is open."""
    await connection.execute(_DECLARE, {"records": [why]})


async def close(connection: AsyncConnection, *, by: str, reason: str) -> Sequence[int]:
    """Close the open cases by an operator's decision; of each, how many records were missing."""
    closed = await connection.execute(_CLOSE, {"by": by, "why": reason})
    return list(closed.scalars())
