"""Statements: one for each account and month with activity. What one says is the ledger's, read at its download."""

from __future__ import annotations

import calendar as months
from datetime import date

import uuid_utils

from services.provider_sandbox import accounts
from services.provider_sandbox.database import Connection, Row
from services.provider_sandbox.encoding import instant
from services.provider_sandbox.feed import publish
from services.provider_sandbox.operations import Refusal
from services.provider_sandbox.statements.links import Links

_FIND = "SELECT * FROM statement WHERE account_id = $1 AND start_date = $2"
_HAS_ACTIVITY = """
    SELECT true FROM posting_day WHERE account_id = $1 AND day BETWEEN $2 AND $3 LIMIT 1
"""
_ADD = """
    INSERT INTO statement (statement_id, account_id, start_date, end_date)
    VALUES ($1, $2, $3, $4) RETURNING *
"""


def shape(statement: Row) -> dict[str, object]:
    start: date = statement["start_date"]
    return {
        "statement_id": statement["statement_id"],
        "account_id": statement["account_id"],
        "start_date": start.isoformat(),
        "end_date": statement["end_date"].isoformat(),
        "year": start.year,
        "month": start.month,
        "generated_at": instant(statement["generated_at"]),
    }


def shape_with_link(statement: Row, links: Links) -> dict[str, object]:
    link = links.to_statement(statement["statement_id"])
    return {**shape(statement), "url": link.url, "url_expires_at": instant(link.expires_at)}


async def generate(connection: Connection, account_id: str, year: int, month: int) -> Row:
    """The statement of the month: the one that there is, or a new one. Refuses a month in which nothing happened."""
    account = await accounts.lock(connection, account_id)
    start = date(year, month, 1)
    end = date(year, month, months.monthrange(year, month)[1])
    existing = await connection.fetchrow(_FIND, account_id, start)
    if existing is not None:
        return existing
    active = await connection.fetchval(
        _HAS_ACTIVITY,
        account_id,
        start,
        end,
    )
    if not active:
        raise Refusal(409, "no_activity", "Nothing happened on the account in this month.")
    statement = await connection.fetchrow(
        _ADD,
        str(uuid_utils.uuid7()),
        account_id,
        start,
        end,
    )
    assert statement is not None
    content = {
        "account_id": account_id,
        "customer_id": account["customer_id"],
        "data": shape(statement),
    }
    await publish(connection, "financial", "statement.available", content)
    return statement
