"""Partitions of events and attempts: one for each UTC day."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Literal
from uuid import UUID

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

Partitioned = Literal["event", "attempt"]
_TODAY = text("SELECT CAST(clock_timestamp() AT TIME ZONE 'UTC' AS date)")
_DROP_HELD = text(
    """
    WITH looked_at AS (
        SELECT id, event_day, state FROM delivery WHERE id > :after ORDER BY id LIMIT :most
    ), dropped AS (
        DELETE FROM delivery WHERE id = ANY(ARRAY(
            SELECT id FROM delivery
            WHERE id = ANY(ARRAY(SELECT id FROM looked_at WHERE event_day < :before AND state = 'held'))
                AND state = 'held'
            FOR UPDATE SKIP LOCKED
        ))
        RETURNING id
    )
    SELECT (SELECT count(*) FROM dropped) AS dropped,
        ARRAY(SELECT DISTINCT event_day FROM looked_at
            WHERE event_day < :before AND id NOT IN (SELECT id FROM dropped)) AS days_left,
        (SELECT id FROM looked_at ORDER BY id DESC LIMIT 1) AS last
    """
)
_HAS_DELIVERIES = text("SELECT EXISTS (SELECT FROM delivery WHERE event_day = :day)")
_LOCK_EVENTS = text("LOCK TABLE ONLY event IN ACCESS EXCLUSIVE MODE")
_STATEMENT_TIMEOUT = text("SET LOCAL statement_timeout = '2s'")
LOCK_TIMEOUT = text("SET LOCAL lock_timeout = '2s'")


async def days(connection: AsyncConnection, table: Partitioned) -> set[date]:
    """The days that have a partition."""
    found = await connection.execute(
        text(
            "SELECT c.relname FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid"
            " WHERE i.inhparent = CAST(:table AS regclass)"
        ),
        {"table": table},
    )
    return {date.fromisoformat(name.rpartition("_")[2]) for name in found.scalars()}


async def make(connection: AsyncConnection, table: Partitioned, wanted: Iterable[date]) -> None:
    """Make those that are missing. In a transaction of its own: writing goes on meanwhile."""
    await connection.execute(LOCK_TIMEOUT)
    await connection.execute(
        text("SELECT pg_advisory_xact_lock(hashtext(current_schema()), hashtext('partitions'))")
    )
    for day in sorted(set(wanted) - await days(connection, table)):
        # Attaching an existing table, unlike creating one in place, lets inserts go on.
        await connection.execute(
            text(f"CREATE TABLE {_name(table, day)} (LIKE {table} INCLUDING CONSTRAINTS)")
        )
        await connection.execute(
            text(
                f"ALTER TABLE {table} ATTACH PARTITION {_name(table, day)}"
                f" FOR VALUES FROM ('{day}') TO ('{day + timedelta(days=1)}')"
            )
        )


async def drop(connection: AsyncConnection, table: Partitioned, day: date) -> None:
    """Drop one. In a transaction of its own: it waits for every reader of the table, two seconds at most."""
    await connection.execute(LOCK_TIMEOUT)
    await connection.execute(text(f"DROP TABLE IF EXISTS {_name(table, day)}"))


@dataclass(frozen=True, slots=True)
class HeldDropped:
    """
    Args:
        dropped: how many.
        days_left: the days before, of which there are other deliveries among those that were looked at.
        last: the id of the last that was looked at, None when there was none.
    """

    dropped: int
    days_left: frozenset[date]
    last: UUID | None


async def drop_held_deliveries(
    connection: AsyncConnection, before: date, *, after: UUID, most: int
) -> HeldDropped:
    """Look at so many deliveries in order of their ids, and remove those that are held of events from before a day.

    Once a day all of them are looked at, for which an index of the days, to be written with each delivery, would be too
    dear.
    """
    found = await connection.execute(_DROP_HELD, {"before": before, "after": after, "most": most})
    dropped, days_left, last = found.one()
    return HeldDropped(int(dropped), frozenset(days_left), last)


async def has_deliveries(connection: AsyncConnection, day: date) -> bool:
    """Whether any delivery is left of events of the day. None is added to them until the transaction ends: who adds one
    reads its event. For that events are locked, so reading the deliveries ends after two seconds.
    """
    await connection.execute(LOCK_TIMEOUT)
    await connection.execute(_STATEMENT_TIMEOUT)
    await connection.execute(_LOCK_EVENTS)
    return bool((await connection.execute(_HAS_DELIVERIES, {"day": day})).scalar_one())


async def today(connection: AsyncConnection) -> date:
    """The UTC day by the database's clock."""
    day: date = (await connection.execute(_TODAY)).scalar_one()
    return day


def _name(table: Partitioned, day: date) -> str:
    return f"{table}_{day:%Y%m%d}"
