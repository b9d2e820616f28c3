"""Following setbacks of the database's clock, as by a failover to a server whose clock is behind.

After one, times that were written before look younger than they are, or lie in the future: a provider may have
forgotten a key that looks remembered. Each second a process stores a reading of the database's clock with the present
life of the database (`continuity`), and how far its own clock was ahead of that one. A database's clock that shows less
than the newest reading was set back. The process's clock tells the length:

| the process's clock is ahead | length of the setback |
|---|---|
| further than at the reading, by the difference between reading and clock or more | by how much further |
| otherwise: it was set back as well, as where one machine has all clocks | the difference, at least |

The times that rules compare with the clock are then dated back by this length: those of the lives here, those of sends
by the service, in one transaction. The times at which commands are due follow in batches, since there may be hundreds
of thousands. A row that was written between the setback and its detection, within a second, looks older than it is. A
setback that is shorter than a time in which no process saw the database is not detected.

The times at which commands were accepted are not dated back: they are in the audit. Where this database may lack sends,
a send that it lacks is taken to be no older than its command (`accepted_at`). After a setback it may be older by the
setback's length, but not older than all that was lost (`lost_history_began_seconds()`): that matters where the doubt
lasts for as long as a provider remembers keys.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import structlog
from prometheus_client import Counter
from sqlalchemy import Interval, bindparam, case, func, null, select, update

from libs.persistence import inbox_housekeeping
from libs.persistence.async_engine import AsyncConnection
from libs.persistence.tables import INSTANT
from libs.persistence.tables import database_life as table

TOLERANCE = timedelta(seconds=2)
"""A clock that NTP corrects is set back by less."""

SETBACKS = Counter(
    "bankside_database_clock_setbacks",
    "Setbacks of the database's clock that this process has noticed",
)


@dataclass(frozen=True, slots=True)
class Setback:
    """A setback that was followed.

    Args:
        is_at_least: it may have been longer, since the process's clock was set back as well, or is not compared.
    """

    length: timedelta
    is_at_least: bool = False


DateBack = Callable[[AsyncConnection, timedelta], Awaitable[None]]
"""Dates the times of sends back. Last argument: by how much."""

_NEWEST_READING = (
    select(table.c.last_seen_at, table.c.process_ahead, func.clock_timestamp().label("now"))
    .order_by(table.c.last_seen_at.desc())
    .limit(1)
)
_EARLIER = table.alias("earlier")
_LEFT_OVER = select(
    func.coalesce(func.sum(_EARLIER.c.put_off_by), timedelta(), type_=Interval)
).scalar_subquery()
_IS_PRESENT = table.c.started_at == func.pg_postmaster_start_time()
_SETBACK = bindparam("setback", type_=Interval)
_PROCESS_AHEAD = bindparam("process_is_ahead", type_=Interval)
# `first_seen_at` of the present life is not dated back: what was sent before it may be on its way for the transit time
# that begins with it. Where it was later than the clock, `database_life.see` has set it to the clock's time.
_DATE_LIVES_BACK = update(table).values(
    first_seen_at=case(
        (_IS_PRESENT, table.c.first_seen_at), else_=table.c.first_seen_at - _SETBACK
    ),
    last_seen_at=case((_IS_PRESENT, func.clock_timestamp()), else_=table.c.last_seen_at - _SETBACK),
    process_ahead=case((_IS_PRESENT, _PROCESS_AHEAD), else_=table.c.process_ahead + _SETBACK),
    report_due_at=table.c.report_due_at - _SETBACK,
    # Commands that an earlier setback has put off may be left over: they are begun anew with the present one.
    put_off_by=case((_IS_PRESENT, _SETBACK + _LEFT_OVER)),
    put_off_after=case((_IS_PRESENT, func.clock_timestamp())),
)
_PUT_OFF = (
    select(table.c.started_at, table.c.put_off_by, table.c.put_off_after)
    .where(table.c.put_off_by.is_not(None))
    .limit(1)
    .with_for_update()
)
_BROUGHT_FORWARD = update(table).where(table.c.started_at == bindparam("life"))
_BROUGHT_FORWARD_UNTIL = _BROUGHT_FORWARD.values(put_off_after=bindparam("until", type_=INSTANT))
_NO_LONGER_PUT_OFF = _BROUGHT_FORWARD.values(put_off_by=null(), put_off_after=null())


async def follow(connection: AsyncConnection, date_back: DateBack | None) -> Setback | None:
    """Date times back if the clock was set back. The present life is locked by this transaction, so that one process
    does it.
    """
    newest = (await connection.execute(_NEWEST_READING)).one()
    process_ahead = datetime.now(UTC) - newest.now
    setback = _setback(newest.last_seen_at - newest.now, process_ahead, newest.process_ahead)
    if setback is not None:
        values = {"setback": setback.length, "process_is_ahead": process_ahead}
        await connection.execute(_DATE_LIVES_BACK, values)
        if date_back is not None:
            await date_back(connection, setback.length)
    return setback


def _setback(
    difference: timedelta, process_ahead: timedelta, process_was_ahead: timedelta | None
) -> Setback | None:
    """What the newest reading and the clock of this process tell.

    Args:
        difference: how far the newest reading lies ahead.
        process_was_ahead: None where no process of this release has seen the database.
    """
    if difference < TOLERANCE:
        return None
    if process_was_ahead is None or process_ahead - process_was_ahead < difference:
        return Setback(difference, is_at_least=True)
    return Setback(process_ahead - process_was_ahead)


async def bring_forward(connection: AsyncConnection) -> bool:
    """Have some more of the open commands due earlier by as much as the clock was set back. Whether there may be more.

    A driver that has locked a command and waits for a life (`continuity.note_missing`) may end in a deadlock with this:
    one of both is tried again.
    """
    put_off = (await connection.execute(_PUT_OFF)).first()
    if put_off is None:
        return False
    until = await inbox_housekeeping.bring_forward(
        connection, put_off.put_off_by, after=put_off.put_off_after
    )
    life = {"life": put_off.started_at}
    if until is None:
        await connection.execute(_NO_LONGER_PUT_OFF, life)
    else:
        await connection.execute(_BROUGHT_FORWARD_UNTIL, life | {"until": until})
    return until is not None


def report(setback: Setback) -> None:
    """Count and log a setback that was followed, once that is committed."""
    SETBACKS.inc()
    structlog.get_logger("continuity").error(
        "database_clock_set_back",
        seconds=round(setback.length.total_seconds(), 1),
        at_least=setback.is_at_least,
    )
