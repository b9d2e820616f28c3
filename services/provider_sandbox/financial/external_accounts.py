"""Reading external accounts: the primary one of an account, all of a business."""

from __future__ import annotations

import re
from typing import Annotated

from pydantic import Field

from services.provider_sandbox.database import Connection
from services.provider_sandbox.operations import NoQuery, Query, Refusal, not_found

_PRIMARY = """
    SELECT link.external_account_id, link.account_number, link.name_on_account AS title,
        link.routing_number, link.bank_name AS institution_name
    FROM account JOIN external_account AS link USING (core_id)
    WHERE account.account_id = $1 AND link.is_primary
"""
_PAGE = """
    SELECT external_account_id, bank_name, name_on_account, routing_number, account_number,
        is_primary AS primary, external_account.sequence
    FROM external_account JOIN core_customer USING (core_id)
    WHERE customer_id = $1 AND kind = 'business' AND external_account.status = 'open'
        AND ($3::bigint IS NULL OR (is_primary, external_account.sequence) < ($2, $3))
    ORDER BY is_primary DESC, external_account.sequence DESC LIMIT $4
"""


class ListExternalAccounts(Query):
    customer_id: str
    limit: Annotated[int, Field(ge=1, le=100)] = 50
    cursor: str | None = None


def _position(cursor: str | None) -> tuple[bool, int | None]:
    """Where a page begins: below this (is primary, sequence). A cursor is `p` or `o` and the sequence."""
    if cursor is None:
        return True, None
    if not re.fullmatch("[po][0-9]{1,18}", cursor):
        raise Refusal(400, "invalid", "cursor: not one that was given out.")
    return cursor[0] == "p", int(cursor[1:])


async def get_external_account(connection: Connection, account_id: str, _: NoQuery) -> object:
    """The primary one of the account's customer."""
    row = await connection.fetchrow(
        _PRIMARY,
        account_id,
    )
    if row is None:
        raise not_found("external account")
    return dict(row)


async def list_external_accounts(
    connection: Connection, _: str, query: ListExternalAccounts
) -> object:
    """The open ones of a business, the primary first, then the newest first."""
    is_primary, sequence = _position(query.cursor)
    rows = await connection.fetch(
        _PAGE,
        query.customer_id,
        is_primary,
        sequence,
        query.limit + 1,
    )
    page = [dict(row) for row in rows[: query.limit]]
    sequences = [row.pop("sequence") for row in page]
    cursor = None
    if len(rows) > query.limit:
        cursor = f"{'p' if page[-1]['primary'] else 'o'}{sequences[-1]}"
    return {"external_accounts": page, "next_cursor": cursor}
