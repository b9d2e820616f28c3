"""Sums of postings: the balance that each account should have, and the debit of each wire."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal

from sqlalchemy import BigInteger, Numeric, Text, any_, bindparam, func, select
from sqlalchemy.dialects.postgresql import ARRAY, insert

from libs.persistence import cursor
from libs.persistence.async_engine import AsyncConnection
from services.reconciliation.ports import Posting
from services.reconciliation.tables import posted as posted_table
from services.reconciliation.tables import wire_debit

STREAM = "postings"
WIRE_STREAM = "wire_postings"
"""Moves with `STREAM`, but not where a process of the release before has added postings: it keeps less of those of
wires.
"""
WIRE = "wire"
"""The type of the debit that takes a wire's money; its transaction id is the wire's. A credit of this type came in by a
wire of another bank, of which we have no record.
"""

_IDS = any_(bindparam("ids", type_=ARRAY(Text)))
_AMOUNTS = bindparam("amounts", type_=ARRAY(Numeric))
_posting = (
    func.unnest(
        bindparam("account_ids", type_=ARRAY(Text)),
        _AMOUNTS,
        bindparam("positions", type_=ARRAY(BigInteger)),
    )
    .table_valued("account_id", "amount", "position")
    .render_derived(name="posting")
)
_INSERT_ACCOUNTS = insert(posted_table).from_select(
    ["account_id", "total", "last_position"],
    select(_posting.c.account_id, func.sum(_posting.c.amount), func.max(_posting.c.position))
    .group_by(_posting.c.account_id)
    .order_by(_posting.c.account_id),
)
_ADD_TO_ACCOUNTS = _INSERT_ACCOUNTS.on_conflict_do_update(
    index_elements=[posted_table.c.account_id],
    set_={
        "total": posted_table.c.total + _INSERT_ACCOUNTS.excluded.total,
        "last_position": _INSERT_ACCOUNTS.excluded.last_position,
    },
)
_debit = (
    func.unnest(
        bindparam("transaction_ids", type_=ARRAY(Text)),
        _AMOUNTS,
        bindparam("account_ids", type_=ARRAY(Text)),
    )
    .table_valued("transaction_id", "amount", "account_id")
    .render_derived(name="debit")
)
_INSERT_DEBITS = insert(wire_debit).from_select(
    ["transaction_id", "postings", "amount", "account_id"],
    select(
        _debit.c.transaction_id,
        func.count(),
        func.sum(_debit.c.amount),
        func.min(_debit.c.account_id),
    )
    .group_by(_debit.c.transaction_id)
    .order_by(_debit.c.transaction_id),
)
_ADD_TO_WIRES = _INSERT_DEBITS.on_conflict_do_update(
    index_elements=[wire_debit.c.transaction_id],
    set_={
        "postings": wire_debit.c.postings + _INSERT_DEBITS.excluded.postings,
        "amount": wire_debit.c.amount + _INSERT_DEBITS.excluded.amount,
    },
)
_FORGET = select(func.forget_postings())
_LIST_POSTED = select(posted_table.c.account_id, posted_table.c.total, posted_table.c.last_position)
_POSTED = _LIST_POSTED.where(posted_table.c.account_id == _IDS)
_POSTED_PAGE = (
    _LIST_POSTED.where(posted_table.c.account_id > bindparam("after"))
    .order_by(posted_table.c.account_id)
    .limit(bindparam("limit"))
)
_LIST_DEBITS = select(
    wire_debit.c.transaction_id,
    wire_debit.c.postings,
    wire_debit.c.amount,
    wire_debit.c.account_id,
)
_DEBITS = _LIST_DEBITS.where(wire_debit.c.transaction_id == _IDS)
_DEBITS_PAGE = (
    _LIST_DEBITS.where(wire_debit.c.transaction_id > bindparam("after"))
    .order_by(wire_debit.c.transaction_id)
    .limit(bindparam("limit"))
)


@dataclass(frozen=True, slots=True)
class Posted:
    """The sum of an account's postings up to its last one."""

    account_id: str
    total: Decimal
    last_position: int


@dataclass(frozen=True, slots=True)
class WireDebit:
    """The debits of type `wire` under one transaction id, and their sum, which is negative.

    Args:
        account_id: of one of the debits; None: a process of the release before has added it.
    """

    transaction_id: str
    postings: int
    amount: Decimal
    account_id: str | None


async def position(connection: AsyncConnection) -> int:
    """Of the last posting that was added.

    Sums to which a process of the release before has added are forgotten (see `forget`).
    """
    positions = await cursor.positions(connection)
    added, added_to_wires = (
        positions.get(one, cursor.Position(0)) for one in (STREAM, WIRE_STREAM)
    )
    if added != added_to_wires:
        await forget(connection)
        return 0
    return added.position


async def add(connection: AsyncConnection, moved_from: int, postings: Sequence[Posting]) -> None:
    """Add the postings that follow `moved_from`, in their order.

    Raises:
        cursor.CursorMoved: another process has added them.
    """
    for stream in (STREAM, WIRE_STREAM):
        await cursor.move(connection, stream, expected=moved_from, to=postings[-1].position)
    await connection.execute(
        _ADD_TO_ACCOUNTS,
        {
            "account_ids": [posting.account_id for posting in postings],
            "amounts": [posting.amount for posting in postings],
            "positions": [posting.position for posting in postings],
        },
    )
    wires = [one for one in postings if one.type == WIRE and one.amount < 0]
    if wires:
        await connection.execute(
            _ADD_TO_WIRES,
            {
                "transaction_ids": [posting.transaction_id for posting in wires],
                "amounts": [posting.amount for posting in wires],
                "account_ids": [posting.account_id for posting in wires],
            },
        )


async def forget(connection: AsyncConnection) -> None:
    """Begin again with the provider's first posting.

    It waits for an `add` under way, and a later `add` from the old position fails with CursorMoved: otherwise its
    postings would be added twice. Until the caller's transaction ends nothing is added and no sum is read. Raises when
    one of these holds its lock for five seconds; then nothing is forgotten.
    """
    await connection.execute(_FORGET)


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
