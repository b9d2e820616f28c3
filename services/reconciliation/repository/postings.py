"""Sums of postings: the balance that each account should have, the debit of each wire, and what was returned."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from sqlalchemy import BigInteger, Numeric, Select, Table, Text, any_, bindparam, func, select, text
from sqlalchemy.dialects.postgresql import ARRAY, Insert, insert

from libs.persistence import cursor
from libs.persistence.async_engine import AsyncConnection
from services.reconciliation.ports import Posting
from services.reconciliation.tables import posted as posted_table
from services.reconciliation.tables import return_posting, wire_debit

STREAM = "postings"
WIRE_STREAM = "wire_postings"
"""Moves with `STREAM`, but not where a process of the release before has added postings: it keeps less of those of
wires.
"""
WIRE = "wire"
"""The type of the debit that takes a wire's money; its transaction id is the wire's. A credit of this type came in by a
wire of another bank, of which we have no record.
"""
RETURN = "return"
"""The type of the credit that gives a wire's money back, under a transaction id of its own. Credits of returned ACH
requests have it, too.
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
_of_wire = (
    func.unnest(
        bindparam("transaction_ids", type_=ARRAY(Text)),
        _AMOUNTS,
        bindparam("account_ids", type_=ARRAY(Text)),
    )
    .table_valued("transaction_id", "amount", "account_id")
    .render_derived(name="of_wire")
)


def _adding_to(table: Table) -> Insert:
    """Add postings to the sums under their transaction ids."""
    added = insert(table).from_select(
        ["transaction_id", "postings", "amount", "account_id"],
        select(
            _of_wire.c.transaction_id,
            func.count(),
            func.sum(_of_wire.c.amount),
            func.min(_of_wire.c.account_id),
        )
        .group_by(_of_wire.c.transaction_id)
        .order_by(_of_wire.c.transaction_id),
    )
    return added.on_conflict_do_update(
        index_elements=[table.c.transaction_id],
        set_={
            "postings": table.c.postings + added.excluded.postings,
            "amount": table.c.amount + added.excluded.amount,
        },
    )


def _of_ids(table: Table) -> Select[Any]:
    return _all_of(table).where(table.c.transaction_id == _IDS)


def _all_of(table: Table) -> Select[Any]:
    return select(table.c.transaction_id, table.c.postings, table.c.amount, table.c.account_id)


_ADD_DEBITS = _adding_to(wire_debit)
_ADD_RETURNS = _adding_to(return_posting)
_FORGET = select(func.forget_postings())
_KEEP = text("LOCK TABLE posted, wire_debit, return_posting IN ACCESS SHARE MODE")
_LIST_POSTED = select(posted_table.c.account_id, posted_table.c.total, posted_table.c.last_position)
_POSTED = _LIST_POSTED.where(posted_table.c.account_id == _IDS)
_POSTED_PAGE = (
    _LIST_POSTED.where(posted_table.c.account_id > bindparam("after"))
    .order_by(posted_table.c.account_id)
    .limit(bindparam("limit"))
)
_DEBITS = _of_ids(wire_debit)
_RETURNS = _of_ids(return_posting)
_DEBITS_PAGE = (
    _all_of(wire_debit)
    .where(wire_debit.c.transaction_id > bindparam("after"))
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
class WirePostings:
    """The debits of type `wire` under one transaction id, or the postings of type `return`: how many, and their sum. A
    debit is negative.

    Args:
        account_id: of one of them; None: a process of the release before has added it.
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
    debits = [one for one in postings if one.type == WIRE and one.amount < 0]
    returns = [one for one in postings if one.type == RETURN]
    for statement, added in ((_ADD_DEBITS, debits), (_ADD_RETURNS, returns)):
        if added:
            await connection.execute(
                statement,
                {
                    "transaction_ids": [posting.transaction_id for posting in added],
                    "amounts": [posting.amount for posting in added],
                    "account_ids": [posting.account_id for posting in added],
                },
            )


async def forget(connection: AsyncConnection) -> None:
    """Begin again with the provider's first posting.

    It waits for an `add` under way, and a later `add` from the old position fails with CursorMoved: otherwise its
    postings would be added twice. Until the caller's transaction ends nothing is added and no sum is read. Raises when
    one of these holds its lock for five seconds; then nothing is forgotten.
    """
    await connection.execute(_FORGET)


async def keep(connection: AsyncConnection) -> None:
    """Until this transaction ends no sum is forgotten; postings go on being added."""
    await connection.execute(_KEEP)


async def posted(connection: AsyncConnection, account_ids: Sequence[str]) -> dict[str, Posted]:
    rows = await connection.execute(_POSTED, {"ids": list(account_ids)})
    return {row.account_id: Posted(*row) for row in rows}


async def page_of_posted(connection: AsyncConnection, after: str, limit: int) -> list[Posted]:
    rows = await connection.execute(_POSTED_PAGE, {"after": after, "limit": limit})
    return [Posted(*row) for row in rows]


async def debits(connection: AsyncConnection, ids: Sequence[str]) -> dict[str, WirePostings]:
    rows = await connection.execute(_DEBITS, {"ids": list(ids)})
    return {row.transaction_id: WirePostings(*row) for row in rows}


async def returns(connection: AsyncConnection, ids: Sequence[str]) -> dict[str, WirePostings]:
    rows = await connection.execute(_RETURNS, {"ids": list(ids)})
    return {row.transaction_id: WirePostings(*row) for row in rows}


async def page_of_debits(connection: AsyncConnection, after: str, limit: int) -> list[WirePostings]:
    rows = await connection.execute(_DEBITS_PAGE, {"after": after, "limit": limit})
    return [WirePostings(*row) for row in rows]
