"""When a wire was first and last sent, and the sends that a restored database may lack."""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

from sqlalchemy import (
    ColumnElement,
    Double,
    Interval,
    Text,
    any_,
    bindparam,
    case,
    cast,
    false,
    func,
    literal,
    null,
    select,
    update,
)
from sqlalchemy.dialects.postgresql import ARRAY

from libs.contracts.wires import WireState
from libs.persistence.async_engine import AsyncConnection
from libs.persistence.lost_history import was_found_missing
from libs.persistence.tables import INSTANT, UUID_TYPE, seconds_since
from libs.providers.writing import Earlier
from services.payments.models import WireRecord
from services.payments.repository.stored_wires import HAS_LOST_SENDS_ONLY
from services.payments.repository.wires import PROVIDER
from services.payments.tables import inbox
from services.payments.tables import wires as table


def _seconds(count: ColumnElement[float] | float) -> ColumnElement[timedelta]:
    return func.make_interval(0, 0, 0, 0, 0, 0, count, type_=Interval)


_IS_PENDING = (
    table.c.transaction_id == bindparam("id"),
    table.c.state == WireState.PENDING_SUBMISSION.value,
)
_BEGIN_SEND = (
    update(table)
    .where(*_IS_PENDING)
    .values(
        send_begun_at=func.coalesce(table.c.send_begun_at, func.statement_timestamp()),
        # Not before the first one, also where the clock of the server that took over is behind.
        last_sent_at=func.greatest(func.statement_timestamp(), table.c.send_begun_at),
    )
)
_WITHDRAW_SEND = update(table).where(*_IS_PENDING).values(send_begun_at=null(), last_sent_at=null())
# Between the first send and now, also where the clock was set back since the time was read.
_SET_LAST_SENT_AT = (
    update(table)
    .where(*_IS_PENDING)
    .values(
        last_sent_at=func.greatest(
            func.least(bindparam("earlier_send_at", type_=INSTANT), func.clock_timestamp()),
            table.c.send_begun_at,
        )
    )
)

_LOST_SECONDS = func.lost_history_seconds(type_=Double)
_MARK_LOST_SENDS = (
    update(table)
    .where(*_IS_PENDING)
    .values(
        last_sent_at=func.least(
            func.clock_timestamp() - _seconds(func.coalesce(_LOST_SECONDS, 0.0)),
            # Before it, also where the life that lost the send was not seen yet.
            table.c.send_begun_at - _seconds(0.000001),
        )
    )
)
_SETBACK = bindparam("setback", type_=Interval)
_HAVE_MARKS = update(table).where(
    # A literal, as in the condition of the partial index.
    table.c.state == literal(WireState.PENDING_SUBMISSION.value, literal_execute=True),
    table.c.send_begun_at.is_not(None),
)
_DATE_BACK = _HAVE_MARKS.values(
    send_begun_at=table.c.send_begun_at - _SETBACK,
    last_sent_at=case(
        (HAS_LOST_SENDS_ONLY, table.c.last_sent_at - _SETBACK),
        else_=func.greatest(
            func.least(table.c.last_sent_at, func.clock_timestamp()),
            # Not before the first one, also where the setback was longer than is known.
            table.c.send_begun_at - _SETBACK,
        ),
    ),
)
_RECORD_WAS_FOUND_MISSING = was_found_missing(bindparam("record", type_=Text)).label(
    "was_found_missing"
)
_LOST_SENDS = select(_LOST_SECONDS.label("lost_seconds"), _RECORD_WAS_FOUND_MISSING)
_LOST_HISTORY = select(
    _LOST_SECONDS.label("lost_seconds"),
    _RECORD_WAS_FOUND_MISSING,
    func.least(
        seconds_since(inbox.c.accepted_at), func.lost_history_began_seconds(type_=Double)
    ).label("first_seconds"),
    func.coalesce(inbox.c.life_started_at == func.pg_postmaster_start_time(), false()).label(
        "is_of_this_life"
    ),
).where(inbox.c.command_id == any_(bindparam("ids", type_=ARRAY(UUID_TYPE))))
WAS_FOUND_MISSING = was_found_missing(literal(f"{PROVIDER}: ") + cast(table.c.transaction_id, Text))
"""The bank had the wire when the database was found to lack its send."""


@dataclass(frozen=True, slots=True)
class LostHistory:
    """What this database may have lost of one wire.

    Args:
        sends: those that the bank may have had.
        may_end_it: that the wire was canceled, declined or refused may be lost, too: its command was accepted before
            this life of the database.
    """

    sends: Earlier
    may_end_it: bool


@dataclass(frozen=True, slots=True)
class LostSends:
    """Whether this database may lack sends of one wire: both as `lost_of_wire` takes them."""

    lost_seconds: float | None
    was_found_missing: bool

    @property
    def are_possible(self) -> bool:
        return self.was_found_missing or self.lost_seconds is not None


async def begin_send(connection: AsyncConnection, transaction_id: UUID) -> None:
    """Note that a send of a pending wire begins, the first one or another. Its row is locked by this transaction."""
    begun = await connection.execute(_BEGIN_SEND, {"id": transaction_id})
    if begun.rowcount != 1:
        raise RuntimeError(f"wire {transaction_id} is not pending: it must not be sent")


async def mark_lost_sends(connection: AsyncConnection, transaction_id: UUID) -> None:
    """Note that nothing was sent since the marks of this pending wire were made: the last send is one that this
    database may have lost, of before its present life. The bank is asked first all the same, also once nothing is in
    doubt any more.
    """
    await connection.execute(_MARK_LOST_SENDS, {"id": transaction_id})


async def restore_last_sent_at(
    connection: AsyncConnection, transaction_id: UUID, last_sent_at: datetime
) -> None:
    """Note that the send that began last certainly did not happen: the known send before it is the last again."""
    await connection.execute(
        _SET_LAST_SENT_AT, {"id": transaction_id, "earlier_send_at": last_sent_at}
    )


async def date_back(connection: AsyncConnection, setback: timedelta) -> None:
    """Follow a setback of the database's clock: first sends are as old as before. Last sends were not
    later than now, and may still arrive for as long as if they had been made now.

    It is one statement, since open sends are few: the circuit breaker lets few pass while the bank is away. 300,000 of
    them take two thirds of the time that a statement has.
    """
    await connection.execute(_DATE_BACK, {"setback": setback})


async def withdraw_send(connection: AsyncConnection, transaction_id: UUID) -> None:
    """Note that the send that began certainly did not happen, and that there was no other."""
    await connection.execute(_WITHDRAW_SEND, {"id": transaction_id})


async def lost_history(connection: AsyncConnection, wire: WireRecord) -> LostHistory | None:
    """What this database may have lost of the wire; None when it lost nothing."""
    commands = [wire.transaction_id, wire.send_command]
    asked = {"ids": commands, "record": _record_of(wire.transaction_id)}
    rows = (await connection.execute(_LOST_HISTORY, asked)).all()
    return lost_of_wire(
        rows[0].lost_seconds,
        max(row.first_seconds or 0.0 for row in rows),
        is_of_this_life=all(row.is_of_this_life for row in rows),
        was_found_missing=rows[0].was_found_missing,
    )


async def lost_sends(connection: AsyncConnection, transaction_id: UUID) -> LostSends:
    """Whether this database may lack a send of a wire of which it knows none."""
    row = (await connection.execute(_LOST_SENDS, {"record": _record_of(transaction_id)})).one()
    return LostSends(row.lost_seconds, row.was_found_missing)


def _record_of(transaction_id: UUID) -> str:
    return f"{PROVIDER}: {transaction_id}"


def lost_of_wire(
    lost_seconds: float | None,
    first_seconds: float | None,
    *,
    is_of_this_life: bool,
    was_found_missing: bool,
) -> LostHistory | None:
    """What this database may have lost of a wire; None when it lost nothing.

    The last such send was not after this life of the database began. The first one was not before the command was
    accepted, unless the acceptance was lost too: then the bank is asked by the wire's id, which it does not forget.

    Args:
        lost_seconds: what `lost_history_seconds()` returned.
        first_seconds: the age of the wire's command in the inbox, or, where that is less, of all that was lost: a wire
            may have waited for approval for days before.
        is_of_this_life: all commands that ask for the wire were accepted in this life.
        was_found_missing: the bank had the wire when this database was found to lack its send, in a case that may be
            closed by now. The wire is then looked up first for ever, and not sent where the bank may have forgotten its
            key.
    """
    if was_found_missing:
        may_end_it = lost_seconds is not None and not is_of_this_life
        return LostHistory(Earlier(math.inf, math.inf), may_end_it)
    if lost_seconds is None:
        return None
    return LostHistory(Earlier(first_seconds or 0.0, lost_seconds), may_end_it=not is_of_this_life)
