"""The state of a command whose 503 reply, "nothing was started", is being sent.

    open ──begin──▶ forgetting ──the 503 was routed──────▶ forgotten: another message may begin the command anew
                        ├──────it was not routed─────────▶ open (`go_on`)
                        └──not known until the deadline──▶ parked

A command in this state is not driven: its caller may have got the 503 and sent the request again, so driving it could
have the effect twice. It is not forgotten either: its caller may get a 504 instead, and the command would be lost.
"""

from __future__ import annotations

from sqlalchemy import bindparam, func, null, update

from libs.persistence.async_engine import AsyncConnection
from libs.persistence.inbox import Leased
from libs.persistence.tables import inbox as table

_CHANGE = update(table).where(table.c.command_id == bindparam("id"))
_BEGIN = _CHANGE.values(forgetting=True)
_GO_ON = _CHANGE.values(forgetting=False)
_FORGET = _CHANGE.values(
    forgotten=True,
    finished_at=func.clock_timestamp(),
    body=b"",
    body_hash=null(),
    lease=null(),
    lease_until=null(),
    last_error=null(),
    faults=0,
    forgetting=False,
)


async def begin(connection: AsyncConnection, command: Leased) -> None:
    """Stop driving the command. Called in a fenced transaction, before the 503 is sent."""
    await connection.execute(_BEGIN, {"id": command.command_id})


async def go_on(connection: AsyncConnection, command: Leased) -> None:
    """Drive the command as before, since the 503 was certainly not routed. Called in a fenced transaction."""
    await connection.execute(_GO_ON, {"id": command.command_id})


async def forget(connection: AsyncConnection, command: Leased) -> None:
    """Take a command back of which nothing was started: its idempotency key is free. Called in a fenced transaction.

    The row keeps the id of its message, since a broker that did not get the ack delivers that message again.
    """
    await connection.execute(_FORGET, {"id": command.command_id})
