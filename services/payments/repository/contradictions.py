"""Contradictions between core banking and our records of wires, stored for reconciliation in the transaction that found
them.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Literal

from sqlalchemy import insert

from libs.persistence.async_engine import AsyncConnection
from services.payments.tables import contradiction

_ADD = insert(contradiction)


@dataclass(frozen=True, slots=True)
class Contradiction:
    """A report of core banking that contradicts our record of a wire.

    Args:
        transaction_id: as core banking gives it; it may be no id of ours.
        feed_position: of the feed's entry; None when an answer to a request contradicted.
        ours: the state that we have; None when we have no such wire.
        theirs: the state that core banking reports.
    """

    kind: Literal[
        "news_of_unknown_wire", "news_of_illegal_transition", "provider_contradicts_record"
    ]
    transaction_id: str
    feed_position: int | None = None
    ours: str | None = None
    theirs: str | None = None


async def add(connection: AsyncConnection, *found: Contradiction) -> None:
    if found:
        await connection.execute(_ADD, [asdict(each) for each in found])
