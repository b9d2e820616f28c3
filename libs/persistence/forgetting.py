"""The state of a command between "nothing was started" and its caller having been told so.

    open ──begin──▶ forgetting ──the 503 was routed──▶ forgotten: another message may begin it anew
                        ├──────it was certainly not──▶ open (`go_on`)
                        └──not known by its deadline──▶ parked

While it is there a command is not driven: driving it could do a second time what a caller that was told 503 sends
again. It is not forgotten either: a caller that was told 504 would lose it.
"""

from __future__ import annotations

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

from libs.persistence.inbox import Leased

_BEGIN = text("UPDATE inbox SET forgetting = true WHERE command_id = :id")
_GO_ON = text("UPDATE inbox SET forgetting = false WHERE command_id = :id")
_FORGET = text(
    "UPDATE inbox SET forgotten = true, finished_at = clock_timestamp(), body = '', body_hash = NULL, lease = NULL,"
    " lease_until = NULL, last_error = NULL, faults = 0, forgetting = false WHERE command_id = :id"
)


async def begin(connection: AsyncConnection, command: Leased) -> None:
    """From now on it is not driven. Called in a fenced transaction, before the caller is told anything."""
    await connection.execute(_BEGIN, {"id": command.command_id})


async def go_on(connection: AsyncConnection, command: Leased) -> None:
    """The caller was certainly not told: it is driven as before. Called in a fenced transaction."""
    await connection.execute(_GO_ON, {"id": command.command_id})


async def forget(connection: AsyncConnection, command: Leased) -> None:
    """Take back a command of which nothing was started: its key is not burned. Called in a fenced transaction.

    What stays is which message it was, for a broker that did not get the ack delivers it again.
    """
    await connection.execute(_FORGET, {"id": command.command_id})
