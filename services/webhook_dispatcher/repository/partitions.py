"""Partitions of `event` and `attempt`, one for each UTC day: `event_20260131`.

Names of tables and bounds of partitions cannot be parameters: PostgreSQL composes the statements that define them.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import date
from typing import Literal

from sqlalchemy import ARRAY, Date, bindparam, cast, func, select, text
from sqlalchemy.ext.asyncio import AsyncConnection

from libs.persistence.engine import Database

Partitioned = Literal["event", "attempt"]

LOCK_TIMEOUT = text("SET LOCAL lock_timeout = '2s'")

_TODAY = select(cast(func.timezone("UTC", func.clock_timestamp()), Date))
_ALONE = select(
    func.pg_advisory_xact_lock(func.hashtext(func.current_schema()), func.hashtext("partitions"))
)
# These read PostgreSQL's catalogue and compose statements, for which SQLAlchemy has no expressions.
_DAYS = text(
    """
    SELECT to_date(right(c.relname, 8), 'YYYYMMDD') FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid
    WHERE i.inhparent = CAST(:table AS regclass)
    """
)
# Attaching an existing table, unlike creating one in place, lets inserts go on.
_COMPOSE_MAKING = text(
    """
    SELECT format('CREATE TABLE %I (LIKE %I INCLUDING CONSTRAINTS)', name, parent),
        format('ALTER TABLE %I ATTACH PARTITION %I FOR VALUES FROM (%L) TO (%L)', parent, name, day, day + 1)
    FROM (
        SELECT parent, day, parent || '_' || to_char(day, 'YYYYMMDD') AS name
        FROM (VALUES (CAST(:table AS text))) AS partitioned (parent), unnest(:days) AS day
    ) AS missing ORDER BY day
    """
).bindparams(bindparam("days", type_=ARRAY(Date)))
_COMPOSE_DROPPING = text(
    """
    SELECT format('DROP TABLE IF EXISTS %I', CAST(:table AS text) || '_' || to_char(CAST(:day AS date), 'YYYYMMDD'))
    """
)


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

    def forget(self) -> None:
        """Look at the catalogue again next time: partitions may have been dropped."""
        for known in self._known.values():
            known.clear()


async def days(connection: AsyncConnection, table: Partitioned) -> set[date]:
    """The days that have a partition."""
    found = await connection.execute(_DAYS, {"table": table})
    return set(found.scalars())


async def make(connection: AsyncConnection, table: Partitioned, wanted: Iterable[date]) -> None:
    """Make those that are missing, in a transaction of its own. Inserts into the table go on meanwhile."""
    await connection.execute(LOCK_TIMEOUT)
    await connection.execute(_ALONE)
    missing = set(wanted) - await days(connection, table)
    composed = await connection.execute(_COMPOSE_MAKING, {"table": table, "days": sorted(missing)})
    for create, attach in composed.all():
        await connection.exec_driver_sql(create)
        await connection.exec_driver_sql(attach)


async def drop(connection: AsyncConnection, table: Partitioned, day: date) -> None:
    """Drop one, in a transaction of its own: it waits for every reader of the table, two seconds at most."""
    await connection.execute(LOCK_TIMEOUT)
    composed = await connection.execute(_COMPOSE_DROPPING, {"table": table, "day": day})
    await connection.exec_driver_sql(composed.scalar_one())
