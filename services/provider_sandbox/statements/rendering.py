"""From the ledger to the PDF, in batches: neither the ledger's rows nor anything else grows with the month's length.

All batches see the postings that there were at the beginning: an account's postings are numbered under its lock.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence

from services.provider_sandbox.calendar import DAY, midnight
from services.provider_sandbox.database import Database, Row
from services.provider_sandbox.encoding import decode_object
from services.provider_sandbox.operations import Refusal
from services.provider_sandbox.statements.document import Facts, Line, StatementDocument

BATCH = 1_000
MOST_LINES = 250_000
"""About 6,000 pages, 16 s and 200 MB."""

_ACCOUNT = """
    SELECT account.account_number, account.account_title, owner.fields
    FROM account JOIN core_customer AS owner USING (core_id) WHERE account_id = $1
"""
_SUMS = """
    SELECT
        (SELECT coalesce(sum(amount), 0) FROM posting_day WHERE account_id = $1 AND day < $4) AS opening,
        count(*) AS lines, count(*) FILTER (WHERE amount > 0) AS credit_count,
        coalesce(sum(amount) FILTER (WHERE amount > 0), 0) AS credits,
        coalesce(-sum(amount) FILTER (WHERE amount < 0), 0) AS debits,
        max(sequence) AS last_sequence
    FROM posting WHERE ledger_account_id = $1 AND settled_at >= $2 AND settled_at < $3
"""
_LINES = """
    SELECT posting.settled_at, posting.transaction_id, amount, type, counterparty_name
    FROM posting JOIN journal_entry USING (transaction_id)
    WHERE ledger_account_id = $1 AND posting.settled_at < $2 AND sequence <= $3
        AND (posting.settled_at, posting.transaction_id) > ($4, $5)
    ORDER BY posting.settled_at, posting.transaction_id LIMIT $6
"""


async def render(database: Database, statement: Row) -> bytes:
    """The statement as it is now. Drawing goes on in a thread, so that the bank answers others meanwhile."""
    account_id = statement["account_id"]
    since, until = midnight(statement["start_date"]), midnight(statement["end_date"] + DAY)
    async with database.reading() as connection:
        account = await connection.fetchrow(
            _ACCOUNT,
            account_id,
        )
        sums = await connection.fetchrow(
            _SUMS,
            account_id,
            since,
            until,
            statement["start_date"],
        )
    assert account is not None
    assert sums is not None
    if sums["lines"] > MOST_LINES:
        raise Refusal(409, "too_long", f"A statement has at most {MOST_LINES} transactions.")
    document = await asyncio.to_thread(StatementDocument, _facts(statement, account, sums))
    after = (since, "")
    while True:
        async with database.reading() as connection:
            rows = await connection.fetch(
                _LINES,
                account_id,
                until,
                sums["last_sequence"],
                *after,
                BATCH,
            )
        if not rows:
            return await asyncio.to_thread(document.finish)
        await asyncio.to_thread(document.add_lines, _lines(rows))
        after = (rows[-1]["settled_at"], rows[-1]["transaction_id"])


def _facts(statement: Row, account: Row, sums: Row) -> Facts:
    return Facts(
        statement_id=statement["statement_id"],
        generated_at=statement["generated_at"],
        start=statement["start_date"],
        end=statement["end_date"],
        holder=_holder(decode_object(account["fields"])),
        account_title=account["account_title"],
        account_number=account["account_number"],
        opening=sums["opening"],
        credits=sums["credits"],
        debits=sums["debits"],
        credit_count=sums["credit_count"],
        debit_count=sums["lines"] - sums["credit_count"],
    )


def _lines(rows: Sequence[Row]) -> list[Line]:
    return [
        Line(row["settled_at"], row["counterparty_name"], row["type"], row["amount"])
        for row in rows
    ]


def _holder(fields: Mapping[str, object]) -> tuple[str, ...]:
    """Name and address of a business, from an open object: the parts that are there as text."""
    address = fields.get("mailing_address") or fields.get("business_address")
    places = address if isinstance(address, dict) else {}
    dba = fields.get("dba")
    town = ", ".join(_texts(places, "city", "state"))
    return tuple(
        line
        for line in (
            *_texts(fields, "business_name"),
            *([f"dba {dba}"] if isinstance(dba, str) and dba else []),
            *_texts(places, "street_1", "street_2"),
            " ".join((town, *_texts(places, "zip_code"))).strip(),
        )
        if line
    )


def _texts(source: Mapping[str, object], *keys: str) -> list[str]:
    return [text for key in keys if isinstance(text := source.get(key), str) and text]
