"""What core banking reports of wires after it has accepted them."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC
from typing import Literal
from uuid import UUID

import structlog
from sqlalchemy.ext.asyncio import AsyncConnection

from libs.contracts.ids import parse_id
from libs.contracts.wires import WireState
from libs.handling.feeds import Record
from services.payments import states
from services.payments.metrics import NEWS_REFUSED
from services.payments.models import WireEntry, WireRecord
from services.payments.reasons import one_line
from services.payments.repository import contradictions, wires
from services.payments.repository.contradictions import Contradiction

FEED = "core"
NEWS: dict[str, WireState] = {
    "wire.submitted": WireState.SUBMITTED,
    "wire.completed": WireState.COMPLETED,
    "wire.rejected": WireState.REJECTED,
    "wire.returned": WireState.RETURNED,
}


async def prepare(entries: Sequence[WireEntry]) -> Record:
    """Each wire's news in their order. News of wires that are not ours, or
    that contradict what is known, change no wire: they are kept as contradictions."""
    told = [
        (parse_id(entry.transaction_id or ""), entry) for entry in entries if entry.type in NEWS
    ]
    ids = {transaction_id for transaction_id, _ in told if transaction_id is not None}

    async def record(connection: AsyncConnection) -> None:
        current = await wires.lock(connection, ids) if ids else {}
        versions: list[WireRecord] = []
        contradicting: list[Contradiction] = []
        for transaction_id, entry in told:
            match _hear(current, transaction_id, entry):
                case Contradiction() as contradiction:
                    contradicting.append(contradiction)
                case heard:
                    versions += heard
        saved = await wires.save(connection, *versions)
        assert saved, "their rows are locked"
        await contradictions.add(connection, *contradicting)

    return record


def _hear(
    current: dict[UUID, WireRecord], transaction_id: UUID | None, entry: WireEntry
) -> list[WireRecord] | Contradiction:
    """The versions that the entry makes of its wire, which is moved on in `current`."""
    wire = current.get(transaction_id) if transaction_id is not None else None
    if wire is None:
        return _contradiction("news_of_unknown_wire", entry, None)
    reason = one_line(entry.reason) if entry.reason else None
    at = entry.occurred_at
    try:
        versions = states.hear(
            wire, NEWS[entry.type], at=at if at.tzinfo else at.replace(tzinfo=UTC), reason=reason
        )
    except states.IllegalTransition as error:
        return _contradiction("news_of_illegal_transition", entry, wire.state, str(error))
    if versions:
        current[wire.transaction_id] = versions[-1]
    return versions


def _contradiction(
    kind: Literal["news_of_unknown_wire", "news_of_illegal_transition"],
    entry: WireEntry,
    ours: WireState | None,
    transition: str | None = None,
) -> Contradiction:
    NEWS_REFUSED.labels(kind.removeprefix("news_of_")).inc()
    structlog.get_logger("feed").error(
        kind,
        type=entry.type,
        position=entry.position,
        transaction_id=entry.transaction_id,
        transition=transition,
    )
    return Contradiction(
        kind,
        one_line(entry.transaction_id or ""),
        feed_position=entry.position,
        ours=ours.value if ours else None,
        theirs=NEWS[entry.type].value,
    )
