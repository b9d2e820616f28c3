"""Sums of postings: what each account's balance should be, and what was debited for each wire."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

from libs.persistence import cursor
from services.reconciliation.ports import Posting

STREAM = "postings"
WIRE = "wire"
"""The type of the debit that takes a wire's money; its transaction id is the wire's. A credit of this type came in by a
wire of another bank, which we have no record of.
"""

_ADD_TO_ACCOUNTS = text(
    """
    INSERT INTO posted AS known (account_id, total, last_position)
    SELECT account_id, sum(amount), max(position)
    FROM unnest(CAST(:accounts AS text[]), CAST(:amounts AS numeric[]), CAST(:positions AS bigint[]))
        AS posting (account_id, amount, position)
    GROUP BY account_id ORDER BY account_id
    ON CONFLICT (account_id) DO UPDATE SET total = known.total + excluded.total,
        last_position = excluded.last_position
    """
)
_ADD_TO_WIRES = text(
    """
    INSERT INTO wire_debit AS known (transaction_id, postings, amount)
    SELECT transaction_id, count(*), sum(amount)
    FROM unnest(CAST(:ids AS text[]), CAST(:amounts AS numeric[])) AS posting (transaction_id, amount)
    GROUP BY transaction_id ORDER BY transaction_id
    ON CONFLICT (transaction_id) DO UPDATE SET postings = known.postings + excluded.postings,
        amount = known.amount + excluded.amount
    """
)
_FORGET_ACCOUNTS = text("DELETE FROM posted")
_FORGET_WIRES = text("DELETE FROM wire_debit")
_POSTED = text("SELECT account_id, total, last_position FROM posted WHERE account_id = ANY(:ids)")
_POSTED_PAGE = text(
    "SELECT account_id, total, last_position FROM posted"
    " WHERE account_id > :after ORDER BY account_id LIMIT :limit"
)
_DEBITS = text(
    "SELECT transaction_id, postings, amount FROM wire_debit WHERE transaction_id = ANY(:ids)"
)
_DEBITS_PAGE = text(
    "SELECT transaction_id, postings, amount FROM wire_debit"
    " WHERE transaction_id > :after ORDER BY transaction_id LIMIT :limit"
)


@dataclass(frozen=True, slots=True)
class Posted:
    """The sum of an account's postings up to its last one."""

    account_id: str
    total: Decimal
    last_position: int


@dataclass(frozen=True, slots=True)
class WireDebit:
    """The debits of type `wire` under one transaction id, and their sum, which is negative."""

    transaction_id: str
    postings: int
    amount: Decimal


async def position(connection: AsyncConnection) -> int:
    """That of the last posting that was added."""
    return await cursor.read(connection, STREAM)


async def add(connection: AsyncConnection, moved_from: int, postings: Sequence[Posting]) -> None:
    """Add the postings that follow `moved_from`, in their order.

    Raises:
        cursor.CursorMoved: another process has added them.
    """
    await cursor.move(connection, STREAM, expected=moved_from, to=postings[-1].position)
    await connection.execute(
        _ADD_TO_ACCOUNTS,
        {
            "accounts": [posting.account_id for posting in postings],
            "amounts": [posting.amount for posting in postings],
            "positions": [posting.position for posting in postings],
        },
    )
    wires = [one for one in postings if one.type == WIRE and one.amount < 0]
    if wires:
        await connection.execute(
            _ADD_TO_WIRES,
            {
                "ids": [posting.transaction_id for posting in wires],
                "amounts": [posting.amount for posting in wires],
            },
        )


async def forget(connection: AsyncConnection) -> None:
    """Begin again with the provider's first posting.

    The cursor goes first: that waits for an `add` under way, whose sums the other statements then see, and a later
    `add` from the old position fails with CursorMoved. Otherwise its postings would be added twice.
    """
    await cursor.forget(connection, STREAM)
    await connection.execute(_FORGET_ACCOUNTS)
    await connection.execute(_FORGET_WIRES)


async def posted(connection: AsyncConnection, account_ids: Sequence[str]) -> dict[str, Posted]:
    rows = await connection.execute(_POSTED, {"ids": list(account_ids)})
    return {row.account_id: Posted(*row) for row in rows}


async def page_of_posted(connection: AsyncConnection, after: str, limit: int) -> list[Posted]:
    rows = await connection.execute(_POSTED_PAGE, {"after": after, "limit": limit})
    return [Posted(*row) for row in rows]


async def debits(connection: AsyncConnection, ids: Sequence[str]) -> dict[str, WireDebit]:
    rows = await connection.execute(_DEBITS, {"ids": list(ids)})
    return {row.transaction_id: WireDebit(*row) for row in rows}


async def page_of_debits(connection: AsyncConnection, after: str, limit: int) -> list[WireDebit]:
    rows = await connection.execute(_DEBITS_PAGE, {"after": after, "limit": limit})
    return [WireDebit(*row) for row in rows]
