"""What core banking says of a wire and our record does not allow: kept for reconciliation, in the transaction that
found it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

DDL = (
    """
    CREATE TABLE contradiction (
        id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
        kind text NOT NULL,
        transaction_id text NOT NULL,
        feed_position bigint,
        ours text,
        theirs text,
        recorded_at timestamptz NOT NULL DEFAULT clock_timestamp()
    )
    """,
)

_ADD = text(
    "INSERT INTO contradiction (kind, transaction_id, feed_position, ours, theirs)"
    " VALUES (:kind, :transaction_id, :feed_position, :ours, :theirs)"
)


@dataclass(frozen=True, slots=True)
class Contradiction:
    """Args:
    transaction_id: as core banking says it; it may be no id of ours.
    feed_position: of the entry of its feed that says so, unless an answer did.
    ours: the state that we hold; None when we hold no such wire.
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
    for one in found:
        await connection.execute(
            _ADD,
            {
                "kind": one.kind,
                "transaction_id": one.transaction_id,
                "feed_position": one.feed_position,
                "ours": one.ours,
                "theirs": one.theirs,
            },
        )
