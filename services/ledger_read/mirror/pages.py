"""Pages by number, totals and filters of an account's transactions, out of the mirror."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date, datetime, time, timedelta
from typing import Any

from libs.contracts.bank_days import BANK_ZONE
from libs.contracts.transactions import ListTransactions, Transaction
from libs.persistence.engine import Database
from services.ledger_read.models import AccountHeading, Page

_PAGE = """
    SELECT page.*, EXISTS (SELECT FROM posting_gap WHERE account_id = $1) AS some_missing FROM posting_page(
        $1, coalesce($2::timestamptz, '-infinity'), coalesce($3::timestamptz, 'infinity'), $4, $5) AS page
    """
_ONE = """
    SELECT transaction_id, tx_uuid, type, settled_at, amount, is_debit, counterparty_name, counterparty_id
    FROM posting WHERE account_id = $1 AND transaction_id = $2
    """

Row = Mapping[str, Any]


class MirroredPages:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def page(
        self, command: ListTransactions, heading: AccountHeading
    ) -> Page[Transaction] | None:
        """The page of those that are mirrored now; None while some between them are missing.

        Every page costs about the same, however long the history is.
        """
        since, until = _begin(command.start_date), _end(command.end_date)
        skipped = (command.page - 1) * command.limit
        async with self._database.driver() as connection:
            rows: Sequence[Row] = await connection.fetch(
                _PAGE, command.account_id, since, until, skipped, command.limit
            )
        # Seen by the same statement as the rows: a gap may have been opened since the account was caught up.
        if rows[0]["some_missing"]:
            return None
        # The total comes with every row, or in a row without a transaction.
        found = [_transaction(row, heading) for row in rows if row["transaction_id"] is not None]
        return Page(found, rows[0]["total"])

    async def one(self, command: ListTransactions, heading: AccountHeading) -> Page[Transaction]:
        """The page of the transaction of the command's `transaction_id`, if it is mirrored."""
        async with self._database.driver() as connection:
            row: Row | None = await connection.fetchrow(
                _ONE, command.account_id, command.transaction_id
            )
        if row is None or not _is_within(row["settled_at"], command):
            return Page([], 0)
        return Page([_transaction(row, heading)] if command.page == 1 else [], 1)


def _is_within(moment: datetime, command: ListTransactions) -> bool:
    since, until = _begin(command.start_date), _end(command.end_date)
    return (since is None or since <= moment) and (until is None or moment < until)


def _begin(day: date | None) -> datetime | None:
    """The day's first moment at the bank."""
    return None if day is None else datetime.combine(day, time(), BANK_ZONE)


def _end(day: date | None) -> datetime | None:
    """The first moment after the day; none after the last day of the calendar."""
    return None if day is None or day == date.max else _begin(day + timedelta(days=1))


def _transaction(row: Row, heading: AccountHeading) -> Transaction:
    return Transaction(
        transaction_id=row["transaction_id"],
        account_number=heading.account_number,
        account_group=heading.account_group,
        type=row["type"],
        settled_at=row["settled_at"],
        counterparty_name=row["counterparty_name"],
        counterparty_id=row["counterparty_id"],
        amount=row["amount"],
        debit_credit_flag=row["is_debit"],
        tx_uuid=str(row["tx_uuid"]),
    )
