"""Entries of the feed that wait until onboarding owns their accounts, stored in the transaction that moves the cursor.

The row of an account is locked by each transaction that adds or removes entries of it, so that none is reported twice.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta

from sqlalchemy import BigInteger, Double, Interval, Text, bindparam, delete, exists, func, select
from sqlalchemy import update as sql_update
from sqlalchemy.dialects.postgresql import ARRAY, insert

from libs.persistence.async_engine import AsyncConnection
from libs.persistence.chosen_rows import is_chosen
from libs.persistence.earlier_clock import EARLIER_NOW
from libs.persistence.engine import Database
from libs.persistence.tables import INSTANT
from services.ledger_read.models import WaitingEntry
from services.ledger_read.tables import waiting_account, waiting_entry

FIRST_PAUSE_SECONDS = 0.5
"""Until onboarding is asked about an account again; it doubles with each try."""
LONGEST_PAUSE_SECONDS = 300.0
LEASE_SECONDS = 30.0
"""An account that was taken is left to the process that took it for this time. A process that works on it for longer
does no harm: the entries are removed once, by the process that reports them first.
"""

_ACCOUNT, _ENTRY = waiting_account.c, waiting_entry.c
_NOW = func.clock_timestamp(type_=INSTANT)
_OF_ACCOUNT = bindparam("of_account", type_=Text)
_CUSTOMER = select(_ACCOUNT.customer_id).where(_ACCOUNT.account_id == _OF_ACCOUNT)
# The update changes nothing: it locks a row that is there.
_ADD_ACCOUNT = insert(waiting_account).on_conflict_do_update(
    index_elements=[_ACCOUNT.account_id], set_={"customer_id": _ACCOUNT.customer_id}
)
_ADD_ENTRY = insert(waiting_entry)
_PAUSE_SECONDS = func.least(
    LONGEST_PAUSE_SECONDS,
    FIRST_PAUSE_SECONDS * func.power(2, func.least(_ACCOUNT.tries, 20), type_=Double),
    type_=Double,
)
_DUE = (
    select(_ACCOUNT.account_id)
    # Unlike `clock_timestamp()`, it is stable, so that the index is used.
    .where(_ACCOUNT.due_at <= func.statement_timestamp())
    .order_by(_ACCOUNT.due_at)
    .limit(bindparam("limit"))
    .with_for_update(skip_locked=True)
    .cte("due")
)
_TAKE = (
    sql_update(waiting_account)
    .where(_ACCOUNT.account_id == _DUE.c.account_id)
    .values(due_at=_NOW + timedelta(seconds=LEASE_SECONDS))
    .returning(_ACCOUNT.account_id, _ACCOUNT.customer_id, _ACCOUNT.tries)
)
# Not in `_DUE`, which would walk over all accounts that pause.
_HASTEN = (
    sql_update(waiting_account)
    .where(
        is_chosen(
            _ACCOUNT.account_id,
            select(_ACCOUNT.account_id)
            .where(
                _ACCOUNT.due_at
                > func.statement_timestamp(type_=INSTANT)
                + timedelta(seconds=2 * LONGEST_PAUSE_SECONDS)
            )
            .with_for_update(skip_locked=True),
        )
    )
    .values(due_at=_NOW)
)
_POSTPONE = (
    sql_update(waiting_account)
    .where(_ACCOUNT.account_id == _OF_ACCOUNT)
    .values(
        tries=_ACCOUNT.tries + 1,
        due_at=_NOW + func.make_interval(0, 0, 0, 0, 0, 0, _PAUSE_SECONDS, type_=Interval),
    )
)
_GO_ON = (
    sql_update(waiting_account)
    .where(_ACCOUNT.account_id == _OF_ACCOUNT)
    .values(tries=0, due_at=_NOW)
)
_LOCK = _CUSTOMER.with_for_update()
_ENTRIES = (
    select(
        _ENTRY.account_id,
        _ACCOUNT.customer_id,
        _ENTRY.position,
        _ENTRY.event_id,
        _ENTRY.type,
        _ENTRY.object_id,
        _ENTRY.occurred_at,
    )
    .join(waiting_account, _ACCOUNT.account_id == _ENTRY.account_id)
    .where(_ENTRY.account_id == _OF_ACCOUNT)
    .order_by(_ENTRY.position)
    .limit(bindparam("limit"))
)
_REMOVE = delete(waiting_entry).where(
    _ENTRY.account_id == _OF_ACCOUNT,
    _ENTRY.position == func.any(bindparam("positions", type_=ARRAY(BigInteger))),
)
_OLDER = delete(waiting_entry).where(
    _ENTRY.account_id == _OF_ACCOUNT,
    _ENTRY.noted_at <= EARLIER_NOW - bindparam("age", type_=Interval),
)
_ALL = delete(waiting_entry).where(_ENTRY.account_id == _OF_ACCOUNT)
_END = delete(waiting_account).where(
    _ACCOUNT.account_id == _OF_ACCOUNT,
    ~exists().where(_ENTRY.account_id == _ACCOUNT.account_id),
)
_COUNT = select(func.count()).select_from(waiting_account)


class AlreadyReported(Exception):
    """Another process has removed the entries."""


@dataclass(frozen=True, slots=True)
class WaitingAccount:
    account_id: str
    customer_id: str
    tries: int


async def add(connection: AsyncConnection, entries: Sequence[WaitingEntry]) -> None:
    """Store the entries; an account that had none before is due at once."""
    if not entries:
        return
    accounts = {entry.account_id: entry.customer_id for entry in entries}
    # In the order of their keys, so that two transactions wait for one another and never for each other.
    for account_id in sorted(accounts):
        await connection.execute(
            _ADD_ACCOUNT, {"account_id": account_id, "customer_id": accounts[account_id]}
        )
    rows = [
        {
            "account_id": entry.account_id,
            "position": entry.position,
            "event_id": entry.event_id,
            "type": entry.type,
            "object_id": entry.object_id,
            "occurred_at": entry.occurred_at,
        }
        for entry in entries
    ]
    await connection.execute(_ADD_ENTRY, rows)


class WaitingEntries:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def customer_of(self, account_id: str) -> str | None:
        """The customer of an account of which entries wait; None: none does."""
        async with self._database.autocommit() as connection:
            found = await connection.execute(_CUSTOMER, {"of_account": account_id})
            customer_id: str | None = found.scalar_one_or_none()
        return customer_id

    async def take(self, limit: int) -> list[WaitingAccount]:
        """Accounts that are due. Each is due again after a lease, also when this process dies."""
        async with self._database.transaction() as connection:
            rows = await connection.execute(_TAKE, {"limit": limit})
            return [WaitingAccount(**row._mapping) for row in rows]

    async def hasten(self) -> None:
        """Make accounts due now that are due later than after any pause: that time was written before the database's
        clock was set back.
        """
        async with self._database.transaction() as connection:
            await connection.execute(_HASTEN)

    async def postpone(self, account_id: str) -> None:
        async with self._database.transaction() as connection:
            await connection.execute(_POSTPONE, {"of_account": account_id})

    async def entries(self, account_id: str, limit: int) -> list[WaitingEntry]:
        """Of an account, in the order of the feed."""
        async with self._database.transaction() as connection:
            rows = await connection.execute(_ENTRIES, {"of_account": account_id, "limit": limit})
            return [WaitingEntry(**row._mapping) for row in rows]

    @asynccontextmanager
    async def removing(
        self, account_id: str, positions: Sequence[int]
    ) -> AsyncIterator[AsyncConnection]:
        """A transaction that removes entries; what else the account has is due at once.

        Raises:
            AlreadyReported: before the body.
        """
        of_account = {"of_account": account_id}
        async with self._database.transaction() as connection:
            await connection.execute(_LOCK, of_account)
            removed = await connection.execute(_REMOVE, of_account | {"positions": list(positions)})
            if removed.rowcount != len(positions):
                raise AlreadyReported(account_id)
            await connection.execute(_END, of_account)
            await connection.execute(_GO_ON, of_account)
            yield connection

    async def give_up(self, account_id: str, age: timedelta | None = None) -> int:
        """Remove the entries that have waited for `age` by both clocks, or all; how many."""
        of_account = {"of_account": account_id}
        async with self._database.transaction() as connection:
            await connection.execute(_LOCK, of_account)
            if age is None:
                removed = await connection.execute(_ALL, of_account)
            else:
                removed = await connection.execute(_OLDER, of_account | {"age": age})
            await connection.execute(_END, of_account)
        return removed.rowcount

    async def count(self) -> int:
        """The accounts of which entries wait."""
        async with self._database.transaction() as connection:
            number: int = (await connection.execute(_COUNT)).scalar_one()
        return number
