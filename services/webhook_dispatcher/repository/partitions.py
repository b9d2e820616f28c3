"""Partitions of `event` and `attempt`, one for each UTC day: `event_20260131`.

The dispatcher may not define tables: it calls functions of the schema's owner that make and drop partitions, and drop
none of the last 30 days (`migrations/versions/0007_grants.py`, `0012_large_backlogs.py`).
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import date
from typing import Literal
from uuid import UUID

from sqlalchemy import ARRAY, Date, Text, bindparam, cast, func, select, text

from libs.persistence.async_engine import AsyncConnection
from libs.persistence.earlier_clock import EARLIER_NOW
from libs.persistence.engine import Database
from libs.persistence.tables import UUID_TYPE

Partitioned = Literal["event", "attempt"]

_TODAY = select(cast(func.timezone("UTC", func.clock_timestamp()), Date))
_EARLIER_TODAY = select(cast(func.timezone("UTC", EARLIER_NOW), Date))
# Reads PostgreSQL's catalogue, for which SQLAlchemy has no expressions.
_DAYS = text(
    """
    SELECT to_date(right(c.relname, 8), 'YYYYMMDD') FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid
    WHERE i.inhparent = CAST(:table AS regclass)
    """
)
_MAKE = select(
    func.make_day_partition(
        bindparam("table", type_=Text), func.unnest(bindparam("days", type_=ARRAY(Date)))
    )
)
_DROP = select(
    func.drop_day_partition(
        bindparam("table", type_=Text),
        bindparam("day", type_=Date),
        bindparam("added_since", type_=UUID_TYPE),
    )
)
_STATEMENT_TIMEOUT = text("SET LOCAL statement_timeout = '2s'")


class Partitions:
    """Makes partitions before they are written to, and remembers which there are."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._known: dict[Partitioned, set[date]] = {"event": set(), "attempt": set()}

    async def ensure(self, table: Partitioned, days: Iterable[date]) -> None:
        """Have a partition for each of the days. To be called before the transaction that writes to them."""
        missing = set(days) - self._known[table]
        if missing:
            async with self._database.transaction() as connection:
                await make(connection, table, missing)
            self._known[table] |= missing

    async def today(self) -> date:
        """The UTC day by the database's clock, since clocks of processes differ."""
        async with self._database.transaction() as connection:
            day: date = (await connection.execute(_TODAY)).scalar_one()
        return day

    async def earlier_today(self) -> date:
        """The UTC day by the database's clock or this process's, whichever is earlier."""
        async with self._database.transaction() as connection:
            return await earlier_today(connection)

    def forget(self) -> None:
        """Look at the catalogue again next time: partitions may have been dropped."""
        for known in self._known.values():
            known.clear()


async def earlier_today(connection: AsyncConnection) -> date:
    """As `Partitions.earlier_today`."""
    day: date = (await connection.execute(_EARLIER_TODAY)).scalar_one()
    return day


async def days(connection: AsyncConnection, table: Partitioned) -> set[date]:
    """The days that have a partition."""
    found = await connection.execute(_DAYS, {"table": table})
    return set(found.scalars())


async def make(connection: AsyncConnection, table: Partitioned, wanted: Iterable[date]) -> None:
    """Make those that are missing, in a transaction of its own. Inserts into the table go on meanwhile."""
    await connection.execute(_MAKE, {"table": table, "days": sorted(set(wanted))})


async def drop(
    connection: AsyncConnection, table: Partitioned, day: date, *, added_since: UUID
) -> bool:
    """Drop one, in a transaction of its own. False: there are deliveries of events of the day.

    It waits for every reader of the table, and holds up all that come after: two seconds at most.

    Args:
        added_since: deliveries with smaller ids were looked at by the caller, and none is of an event of the day.
    """
    await connection.execute(_STATEMENT_TIMEOUT)
    dropped = await connection.execute(
        _DROP, {"table": table, "day": day, "added_since": added_since}
    )
    return bool(dropped.scalar_one())
