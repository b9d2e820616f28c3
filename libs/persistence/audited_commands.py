"""Commands that are finished and not yet in the audit, found in the inbox.

The audit is written a few seconds after a command is final, many in one transaction, so that it costs the commands
nothing. A command leaves the inbox only when it is in the audit (`inbox_housekeeping`).
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

from sqlalchemy import func, select, text
from sqlalchemy.ext.asyncio import AsyncConnection

from libs.persistence.tables import audit, inbox

BATCH = 500
LONGEST_TRANSACTION = timedelta(minutes=2)
"""A transaction that finishes a command ends within this time (`transaction_timeout`, deploy/postgres/schemas.sql). So
a command that is seen now was not finished before one that was seen so much earlier.
"""

_SINCE = select(func.max(audit.c.finished_at) - LONGEST_TRANSACTION).scalar_subquery()
_FINISHED = (
    select(
        inbox.c.command_id,
        inbox.c.operation,
        inbox.c.message_id,
        inbox.c.request_id,
        inbox.c.principal,
        inbox.c.body_hash,
        inbox.c.reply,
        inbox.c.accepted_at,
        inbox.c.finished_at,
    )
    .where(
        inbox.c.finished_at >= func.coalesce(_SINCE, text("'-infinity'::timestamptz")),
        ~select(audit.c.number).where(audit.c.message_id == inbox.c.message_id).exists(),
    )
    .order_by(inbox.c.finished_at)
    .limit(BATCH)
)


@dataclass(frozen=True, slots=True)
class FinishedCommand:
    """`principal` and `reply` encoded; no reply: it was taken back, and its caller told that nothing was started."""

    command_id: UUID
    operation: str
    message_id: str
    request_id: str
    principal: bytes
    body_hash: str | None
    reply: bytes | None
    accepted_at: datetime
    finished_at: datetime


async def find(connection: AsyncConnection) -> list[FinishedCommand]:
    """Up to `BATCH`, those first that were finished first. After `audit.lock`, in its transaction."""
    rows = await connection.execute(_FINISHED)
    return [FinishedCommand(*row) for row in rows]
