"""Commands that are finished and not yet in the audit, found in the inbox.

The audit is written a few seconds after a command is final, many in one transaction, so that a command does not wait
for it. It leaves the inbox only when it is in the audit (`inbox_housekeeping`). A command that was forgotten and begun
anew in these seconds is in the audit once, with its later outcome.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from sqlalchemy import any_, bindparam, not_, select, update
from sqlalchemy.dialects.postgresql import ARRAY

from libs.persistence.async_engine import AsyncConnection
from libs.persistence.idle_locks import ENDED_WHEN_IDLE
from libs.persistence.tables import UUID_TYPE, inbox

BATCH = 500

_FINISHED = (
    select(
        inbox.c.command_id,
        inbox.c.operation,
        inbox.c.request_id,
        inbox.c.principal,
        inbox.c.body_hash,
        inbox.c.reply,
        inbox.c.last_error,
        inbox.c.accepted_at,
        ENDED_WHEN_IDLE,
    )
    .where(inbox.c.finished_at.is_not(None), not_(inbox.c.audited))
    .order_by(inbox.c.finished_at)
    .limit(BATCH)
    .with_for_update(key_share=True, skip_locked=True)
)
_AUDITED = (
    update(inbox)
    .where(inbox.c.command_id == any_(bindparam("ids", type_=ARRAY(UUID_TYPE))))
    .values(audited=True)
)


@dataclass(frozen=True, slots=True)
class FinishedCommand:
    """A command with its encoded principal and reply.

    Without a reply it was forgotten, and `last_error` is the code of the error for which it was.
    """

    command_id: UUID
    operation: str
    request_id: str
    principal: bytes
    body_hash: str | None
    reply: bytes | None
    last_error: str | None
    accepted_at: datetime


async def take(connection: AsyncConnection) -> list[FinishedCommand]:
    """Lock up to `BATCH` of them until the transaction ends, in the order in which they were finished."""
    rows = await connection.execute(_FINISHED)
    return [FinishedCommand(*values) for *values, _ in rows]


async def mark(connection: AsyncConnection, commands: Sequence[FinishedCommand]) -> None:
    """Note that they are in the audit, in the transaction that puts them there."""
    await connection.execute(_AUDITED, {"ids": [command.command_id for command in commands]})
