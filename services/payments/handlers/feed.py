"""What core banking reports of wires after it has accepted them."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC
from uuid import UUID

import structlog
from sqlalchemy.ext.asyncio import AsyncConnection

from libs.contracts.ids import parse_id
from libs.contracts.wires import WireState
from libs.runtime.feeds import Record
from services.payments import states
from services.payments.metrics import NEWS_REFUSED
from services.payments.models import WireEntry, WireRecord
from services.payments.reasons import one_line
from services.payments.repository import wires

FEED = "core"
NEWS: dict[str, WireState] = {
    "wire.submitted": WireState.SUBMITTED,
    "wire.completed": WireState.COMPLETED,
    "wire.rejected": WireState.REJECTED,
    "wire.returned": WireState.RETURNED,
}


async def prepare(entries: Sequence[WireEntry]) -> Record:
    """Each wire's news in their order. Passed over: wires that are not ours, news that contradict what is known."""
    told = [
        (parse_id(entry.transaction_id or ""), entry) for entry in entries if entry.type in NEWS
    ]
    ids = {transaction_id for transaction_id, _ in told if transaction_id is not None}

    async def record(connection: AsyncConnection) -> None:
        current = await wires.lock(connection, ids) if ids else {}
        versions: list[WireRecord] = []
        for transaction_id, entry in told:
            versions += _hear(current, transaction_id, entry)
        saved = await wires.save(connection, *versions)
        assert saved, "their rows are locked"

    return record


def _hear(
    current: dict[UUID, WireRecord], transaction_id: UUID | None, entry: WireEntry
) -> list[WireRecord]:
    """The versions that the entry makes of its wire, which is moved on in `current`."""
    wire = current.get(transaction_id) if transaction_id is not None else None
    if wire is None:
        return _refuse("unknown_wire", entry)
    reason = one_line(entry.reason) if entry.reason else None
    at = entry.occurred_at
    try:
        versions = states.hear(
            wire, NEWS[entry.type], at=at if at.tzinfo else at.replace(tzinfo=UTC), reason=reason
        )
    except states.IllegalTransition as error:
        return _refuse("illegal_transition", entry, transition=str(error))
    if versions:
        current[wire.transaction_id] = versions[-1]
    return versions


def _refuse(reason: str, entry: WireEntry, **more: str) -> list[WireRecord]:
    NEWS_REFUSED.labels(reason).inc()
    structlog.get_logger("feed").error(
        f"news_of_{reason}",
        type=entry.type,
        position=entry.position,
        transaction_id=entry.transaction_id,
        **more,
    )
    return []
