"""Purging the inbox of finished commands, and measuring those that are not final."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlalchemy import (
    Interval,
    bindparam,
    delete,
    exists,
    extract,
    func,
    literal,
    not_,
    or_,
    select,
    update,
)

from libs.persistence.async_engine import AsyncConnection
from libs.persistence.chosen_rows import is_chosen
from libs.persistence.earlier_clock import EARLIER_NOW
from libs.persistence.tables import INSTANT
from libs.persistence.tables import inbox as table

RETENTION_HOURS = 24
PURGE_BATCH = 1000
HASTENED_AT_ONCE = 1000
BROUGHT_FORWARD_AT_ONCE = 1000
_LONGEST_SETBACK = literal(timedelta(days=3650), Interval)

_PURGE = delete(table).where(
    is_chosen(
        table.c.command_id,
        select(table.c.command_id)
        .where(
            table.c.finished_at < EARLIER_NOW - bindparam("age", type_=Interval),
            or_(table.c.forgotten, not_(table.c.keep_for_ever)),
            table.c.audited,
        )
        .limit(bindparam("batch"))
        .with_for_update(skip_locked=True),
    )
)
_HASTEN = (
    update(table)
    .where(
        is_chosen(
            table.c.command_id,
            select(table.c.command_id)
            .where(
                table.c.finished_at.is_(None),
                table.c.parked_at.is_(None),
                table.c.due_at > func.statement_timestamp() + bindparam("ahead", type_=Interval),
                # Those that are parked lie beyond: the index is not read over them.
                table.c.due_at < func.statement_timestamp() + _LONGEST_SETBACK,
            )
            .limit(HASTENED_AT_ONCE)
            .with_for_update(skip_locked=True),
        )
    )
    .values(due_at=func.clock_timestamp())
)
_IS_PUT_OFF = (
    table.c.finished_at.is_(None),
    table.c.parked_at.is_(None),
    table.c.due_at > bindparam("after", type_=INSTANT),
)
_NEXT_PUT_OFF = (
    select(table.c.due_at)
    .where(*_IS_PUT_OFF, table.c.due_at < func.statement_timestamp() + _LONGEST_SETBACK)
    .order_by(table.c.due_at)
    .limit(bindparam("batch"))
    .subquery()
)
_UNTIL = select(func.max(_NEXT_PUT_OFF.c.due_at).label("until"), func.count().label("commands"))
# The lock of one that is driven meanwhile is waited for: its process may end, and it would be due too late.
_BRING_FORWARD = (
    update(table)
    .where(
        is_chosen(
            table.c.command_id,
            select(table.c.command_id)
            .where(*_IS_PUT_OFF, table.c.due_at <= bindparam("until", type_=INSTANT))
            .order_by(table.c.command_id)
            .with_for_update(key_share=True),
        )
    )
    .values(due_at=table.c.due_at - bindparam("setback", type_=Interval))
)
_ABSENT_AND_PURGED_BEFORE = select(
    not_(exists().where(table.c.command_id == bindparam("id"))),
    func.statement_timestamp() - bindparam("age", type_=Interval),
)
_IS_PARKED = table.c.parked_at.is_not(None)
_NOT_PARKED = table.c.parked_at.is_(None)
_BACKLOG = select(
    func.count().filter(_NOT_PARKED),
    func.coalesce(
        extract(
            "epoch",
            func.clock_timestamp() - func.min(table.c.accepted_at).filter(_NOT_PARKED),
        ),
        0,
    ),
    func.count().filter(_IS_PARKED),
    func.coalesce(extract("epoch", func.clock_timestamp() - func.min(table.c.parked_at)), 0),
).where(table.c.finished_at.is_(None))


@dataclass(frozen=True, slots=True)
class Backlog:
    """Commands that are not final. The ages are of the oldest, 0 without any.

    Args:
        open: neither final nor parked.
    """

    open: int
    oldest_open_seconds: float
    parked: int
    longest_parked_seconds: float


async def purge(connection: AsyncConnection, *, behind: timedelta = timedelta()) -> int:
    """Delete up to `PURGE_BATCH` commands whose retention is over by both clocks and which are in the audit; how many.

    Args:
        behind: the age of the oldest command that may wait in the queue. It may repeat one that is known: that one is
            kept for as much longer.
    """
    deleted = await connection.execute(
        _PURGE, {"age": timedelta(hours=RETENTION_HOURS) + behind, "batch": PURGE_BATCH}
    )
    return deleted.rowcount


async def hasten(connection: AsyncConnection, *, ahead: timedelta) -> int:
    """Make up to `HASTENED_AT_ONCE` open commands due now that are due later than after this time; how many.

    Args:
        ahead: longer than any pause. A time beyond was written before the database's clock was set back.
    """
    hastened = await connection.execute(_HASTEN, {"ahead": ahead})
    return hastened.rowcount


async def bring_forward(
    connection: AsyncConnection, setback: timedelta, *, after: datetime
) -> datetime | None:
    """Have the next open commands due earlier by as much as the database's clock was set back. They are about
    `BROUGHT_FORWARD_AT_ONCE`, in the order in which they are due, so that none is brought forward twice: it is due
    before the place where the next call begins.

    Args:
        after: those that are due then are done.

    Returns when the last one of them was due; None: there are no more.
    """
    found = await connection.execute(_UNTIL, {"after": after, "batch": BROUGHT_FORWARD_AT_ONCE})
    batch = found.one()
    if batch.commands:
        values = {"setback": setback, "after": after, "until": batch.until}
        await connection.execute(_BRING_FORWARD, values)
    # Else those that are postponed meanwhile would be brought forward, too, again and again.
    until: datetime | None = batch.until if batch.commands == BROUGHT_FORWARD_AT_ONCE else None
    return until


async def may_be_purged(
    connection: AsyncConnection, command_id: str, *, sent_at: datetime | None
) -> bool:
    """Whether a command that is not in the inbox may have been there, and have been finished, since a message with it
    was sent; None is a time that is not known.
    """
    values = {"id": command_id, "age": timedelta(hours=RETENTION_HOURS)}
    is_absent, purged_before = (await connection.execute(_ABSENT_AND_PURGED_BEFORE, values)).one()
    return is_absent and (sent_at is None or sent_at < purged_before)


async def measure_backlog(connection: AsyncConnection) -> Backlog:
    row = (await connection.execute(_BACKLOG)).one()
    return Backlog(int(row[0]), float(row[1]), int(row[2]), float(row[3]))
