"""The state of a command while its caller is being told that nothing was started, by an error such as 503.

    open ──begin──▶ forgetting ──the reply was routed────▶ forgotten: another message may begin the command anew
                        ├──────it was not routed─────────▶ open (`go_on`)
                        └──not known until the deadline──▶ parked

A command in this state is not driven: its caller may have got the reply and sent the request again, so driving it could
have the effect twice. It is not forgotten either: its caller may get a 504 instead, and the command would be lost.

Other requests with its key are refused while it is not final, and a refused one that is delivered again after it was
forgotten must not begin it anew. So their messages are noted in its row (`inbox_acceptance`), `MOST_NOTES` of them;
a command with more is not forgotten. While the reply is being sent, until its caller's deadline, all messages are
noted.
"""

from __future__ import annotations

from sqlalchemy import and_, bindparam, func, null, or_, update

from libs.persistence.async_engine import AsyncConnection
from libs.persistence.inbox import Leased
from libs.persistence.tables import inbox as table

MOST_NOTES = 1000
"""The most messages that are noted of one command, those that began it included."""

_HAS_PLACE = func.cardinality(table.c.forgotten_messages) < MOST_NOTES
# A parked command is past its caller's deadline when it was being forgotten, and goes on when it is retried.
_IS_BEING_FORGOTTEN = and_(table.c.forgetting, table.c.parked_at.is_(None))
CAN_BE_FORGOTTEN = and_(table.c.finished_at.is_(None), or_(_HAS_PLACE, _IS_BEING_FORGOTTEN))

_CHANGE = update(table).where(table.c.command_id == bindparam("id"))
_BEGIN = _CHANGE.where(_HAS_PLACE).values(forgetting=True, last_error=bindparam("code"))
_GO_ON = _CHANGE.values(forgetting=False)
_FORGET = _CHANGE.values(
    forgotten=True,
    finished_at=func.clock_timestamp(),
    body=b"",
    body_hash=null(),
    lease=null(),
    lease_until=null(),
    faults=0,
    forgetting=False,
)


async def begin(connection: AsyncConnection, command: Leased, code: str) -> bool:
    """Stop driving the command. Called in a fenced transaction, before the error with this code is sent.

    False when `MOST_NOTES` messages are noted of it, so that it cannot be forgotten: it is driven on.
    """
    begun = await connection.execute(_BEGIN, {"id": command.command_id, "code": code})
    return begun.rowcount == 1


async def go_on(connection: AsyncConnection, command: Leased) -> None:
    """Drive the command as before, since the reply was certainly not routed. Called in a fenced transaction."""
    await connection.execute(_GO_ON, {"id": command.command_id})


async def forget(connection: AsyncConnection, command: Leased) -> None:
    """Forget a command of which nothing was started: its idempotency key is free. Called in a fenced transaction.

    The row keeps the code of its caller's answer, for the audit, and the id of its message, since a broker that did not
    get the ack delivers that message again.
    """
    await connection.execute(_FORGET, {"id": command.command_id})
