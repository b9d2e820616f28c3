"""Reports of core banking's feed about wires that it accepted."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Literal
from uuid import UUID

import structlog

from libs.contracts.ids import parse_id
from libs.contracts.wires import WireState
from libs.handling.feed_tail import Record
from libs.persistence import continuity
from libs.persistence.async_engine import AsyncConnection
from libs.persistence.lost_history import has_lost_history
from libs.providers.provider_words import one_line
from services.payments import states
from services.payments.metrics import FEED_REFUSED
from services.payments.models import FeedEntry, WireRecord, WireReport
from services.payments.repository import contradictions, wires
from services.payments.repository.contradictions import Contradiction

FEED = "core"


async def prepare(entries: Sequence[FeedEntry]) -> Record:
    """The write of these entries: their wires move on, in the order of the entries.

    An entry about an unknown wire, or one that contradicts a wire's history, changes no wire and is kept as a
    contradiction.
    """
    reports = [
        (parse_id(entry.report.transaction_id), entry.position, entry.report)
        for entry in entries
        if entry.report is not None
    ]
    ids = {transaction_id for transaction_id, *_ in reports if transaction_id is not None}

    async def record(connection: AsyncConnection) -> None:
        current = await wires.lock(connection, ids) if ids else {}
        unsent = {
            wire.transaction_id
            for wire in current.values()
            if wire.state in wires.UNSENT and wire.has_no_known_send
        }
        versions: list[WireRecord] = []
        contradicting: list[Contradiction] = []
        for transaction_id, position, report in reports:
            match _apply(current, transaction_id, position, report):
                case Contradiction() as contradiction:
                    contradicting.append(contradiction)
                case following:
                    versions += following
        await _note_lost_sends(connection, unsent & {wire.transaction_id for wire in versions})
        changed = {wire.transaction_id for wire in versions}
        causes = await wires.causes(connection, changed) if changed else {}
        saved = await wires.save(connection, *versions, causes=causes)
        assert saved, "their rows are locked"
        await contradictions.add(connection, *contradicting)

    return record


async def _note_lost_sends(connection: AsyncConnection, reported: Collection[UUID]) -> None:
    """Open a case for reported wires of which this database knows no send. It must happen in this commit: afterwards
    the wires look sent, and the continuity check cannot detect the loss.
    """
    if reported and await has_lost_history(connection):
        await continuity.note_missing(connection, wires.PROVIDER, [str(each) for each in reported])


def _apply(
    current: dict[UUID, WireRecord],
    transaction_id: UUID | None,
    position: int,
    report: WireReport,
) -> list[WireRecord] | Contradiction:
    """The versions of its wire that follow from the report of an entry. The last one replaces the wire in `current`."""
    wire = current.get(transaction_id) if transaction_id is not None else None
    if wire is None:
        return _contradiction("news_of_unknown_wire", position, report, None)
    try:
        # The entry of a completion may have come while the wire was not known here, or be skipped.
        versions = states.catch_up(
            wire, report.wire_state, at=report.occurred_at, words=report.reason
        )
    except states.IllegalTransition as error:
        return _contradiction(
            "news_of_illegal_transition", position, report, wire.state, str(error)
        )
    if versions:
        current[wire.transaction_id] = versions[-1]
    return versions


def _contradiction(
    kind: Literal["news_of_unknown_wire", "news_of_illegal_transition"],
    position: int,
    report: WireReport,
    ours: WireState | None,
    transition: str | None = None,
) -> Contradiction:
    FEED_REFUSED.labels(kind.removeprefix("news_of_")).inc()
    structlog.get_logger("feed").error(
        kind,
        reported=report.wire_state.value,
        position=position,
        transaction_id=report.transaction_id,
        transition=transition,
    )
    return Contradiction(
        kind,
        one_line(report.transaction_id),
        feed_position=position,
        ours=ours.value if ours else None,
        theirs=report.wire_state.value,
    )
