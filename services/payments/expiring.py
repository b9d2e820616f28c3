"""Canceling wires that were not decided on in time (interface §9), under the lock of their rows, as decisions are
made (`approving`).
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import NoReturn

from sqlalchemy import bindparam, literal, not_, select

from libs.contracts.wires import WireReason, WireState
from libs.handling.periodic import repeat
from libs.persistence.earlier_clock import EARLIER_NOW
from libs.persistence.engine import Database
from libs.persistence.lost_history import has_lost_history
from services.payments import states
from services.payments.reasons import Why
from services.payments.repository import send_marks, wires
from services.payments.tables import wires as table

EXPIRE_SECONDS = 15.0
EXPIRED_TOGETHER = 100

_EXPIRED = (
    select(table.c.transaction_id)
    .where(
        # A literal, as in the condition of the partial index.
        table.c.state == literal(WireState.PENDING_APPROVAL.value, literal_execute=True),
        table.c.approval_expires_at <= EARLIER_NOW,
        not_(send_marks.WAS_FOUND_MISSING),
    )
    .order_by(table.c.approval_expires_at)
    .limit(bindparam("limit"))
    .with_for_update(key_share=True, skip_locked=True)
)


async def expire_for_ever(database: Database) -> NoReturn:
    """Cancel what was not decided on in time, every `EXPIRE_SECONDS`. Replicas share the wires."""

    async def expire_all() -> None:
        while await expire(database) == EXPIRED_TOGETHER:
            pass

    await repeat("approvals", expire_all, EXPIRE_SECONDS)


async def expire(database: Database) -> int:
    """Cancel at most `EXPIRED_TOGETHER` wires whose time has passed by both clocks; how many there were. One whose send
    was found missing stays: the bank has it.
    """
    async with database.transaction() as connection:
        if await has_lost_history(connection):
            return 0
        found = await connection.execute(_EXPIRED, {"limit": EXPIRED_TOGETHER})
        expired = await wires.lock(connection, [row.transaction_id for row in found])
        now = datetime.now(UTC)
        saved = await wires.save(
            connection,
            *(
                states.advance(
                    wire, WireState.CANCELED, at=now, why=Why(WireReason.APPROVAL_EXPIRED)
                )
                for wire in expired.values()
            ),
        )
        assert saved, "their rows are locked"
    return len(expired)
