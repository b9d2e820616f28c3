"""When a wire was first and last sent, and the sends that a restored database may lack."""

from __future__ import annotations

from datetime import datetime
from uuid import UUID

from sqlalchemy import Double, bindparam, func, null, select, update

from libs.contracts.wires import WireState
from libs.persistence.async_engine import AsyncConnection
from libs.persistence.tables import seconds_since
from libs.providers.writing import Earlier
from services.payments.tables import inbox
from services.payments.tables import wires as table

_IS_PENDING = (
    table.c.transaction_id == bindparam("id"),
    table.c.state == WireState.PENDING_SUBMISSION.value,
)
_BEGIN_SEND = (
    update(table)
    .where(*_IS_PENDING)
    .values(
        send_begun_at=func.coalesce(table.c.send_begun_at, func.statement_timestamp()),
        last_sent_at=func.statement_timestamp(),
    )
)
_WITHDRAW_SEND = update(table).where(*_IS_PENDING).values(send_begun_at=null(), last_sent_at=null())
_SET_LAST_SENT_AT = (
    update(table).where(*_IS_PENDING).values(last_sent_at=bindparam("earlier_send_at"))
)

_LOST_SECONDS = func.lost_history_seconds(type_=Double)
_LOST_HISTORY = select(
    _LOST_SECONDS.label("lost_seconds"),
    func.least(
        seconds_since(inbox.c.accepted_at), func.lost_history_began_seconds(type_=Double)
    ).label("first_seconds"),
).where(inbox.c.command_id == bindparam("id"))


async def begin_send(connection: AsyncConnection, transaction_id: UUID) -> None:
    """Note that a send of a pending wire begins, the first one or another. Its row is locked by this transaction."""
    begun = await connection.execute(_BEGIN_SEND, {"id": transaction_id})
    if begun.rowcount != 1:
        raise RuntimeError(f"wire {transaction_id} is not pending: it must not be sent")


async def restore_last_sent_at(
    connection: AsyncConnection, transaction_id: UUID, last_sent_at: datetime | None
) -> None:
    """Note that the send that began last certainly did not happen: the send before it is the last again."""
    await connection.execute(
        _SET_LAST_SENT_AT, {"id": transaction_id, "earlier_send_at": last_sent_at}
    )


async def withdraw_send(connection: AsyncConnection, transaction_id: UUID) -> None:
    """Note that the send that began certainly did not happen, and that there was no other."""
    await connection.execute(_WITHDRAW_SEND, {"id": transaction_id})


async def lost_history(connection: AsyncConnection, transaction_id: UUID) -> Earlier | None:
    """The sends of one wire that this database may have lost; None when it lost none."""
    row = (await connection.execute(_LOST_HISTORY, {"id": transaction_id})).one()
    return sends_in_lost_history(row.lost_seconds, row.first_seconds)


def sends_in_lost_history(
    lost_seconds: float | None, first_seconds: float | None
) -> Earlier | None:
    """The sends of a wire that this database may have lost; None when it lost none.

    The last such send was not after this life of the database began. The first one was not before the command was
    accepted, unless the acceptance was lost too: then the bank is asked by the wire's id, which it does not forget.

    Args:
        lost_seconds: what `lost_history_seconds()` returned.
        first_seconds: the age of the wire's command in the inbox, or, where that is less, of all that was lost: a wire
            may have waited for approval for days before.
    """
    if lost_seconds is None:
        return None
    return Earlier(first_seconds or 0.0, lost_seconds)
