"""An account's statements, newest first, each with a link to its PDF."""

from __future__ import annotations

from datetime import date

from services.provider_sandbox import accounts
from services.provider_sandbox.calendar import AnyDay
from services.provider_sandbox.database import Connection
from services.provider_sandbox.operations import Read, Refusal
from services.provider_sandbox.pages import CursorPage, read_cursor
from services.provider_sandbox.statements import records
from services.provider_sandbox.statements.links import Links

CURSOR = "([0-9]{6})"
"""The statement's first day, as an ordinal."""

_PAGE = """
    SELECT * FROM statement WHERE account_id = $1
        AND ($2::text IS NULL OR statement_id = $2)
        AND ($3::date IS NULL OR end_date >= $3)
        AND ($4::date IS NULL OR start_date <= $4)
        AND ($5::date IS NULL OR start_date < $5)
    ORDER BY start_date DESC LIMIT $6
"""


class ListStatements(CursorPage):
    statement_id: str | None = None
    start: AnyDay | None = None
    end: AnyDay | None = None


def list_statements(page_limit: int, links: Links) -> Read[ListStatements]:
    async def handle(connection: Connection, account_id: str, query: ListStatements) -> object:
        if query.start is not None and query.end is not None and query.end < query.start:
            raise Refusal(400, "invalid", "end: before start.")
        await accounts.find(connection, account_id)
        limit = min(query.limit, page_limit)
        [before] = read_cursor(query.cursor, CURSOR) or (None,)
        rows = await connection.fetch(
            _PAGE,
            account_id,
            query.statement_id,
            query.start,
            query.end,
            None if before is None else date.fromordinal(int(before)),
            limit + 1,
        )
        page = rows[:limit]
        last = page[-1]["start_date"].toordinal() if len(rows) > limit else None
        return {
            "statements": [records.shape_with_link(row, links) for row in page],
            "next_cursor": None if last is None else str(last),
        }

    return Read("list_statements", "/accounts/{id}/statements", handle, ListStatements)
