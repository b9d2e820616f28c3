"""An account's ACH requests, newest first."""

from __future__ import annotations

from services.provider_sandbox import accounts, ach
from services.provider_sandbox.database import Connection
from services.provider_sandbox.operations import Read
from services.provider_sandbox.pages import CursorPage, read_cursor

CURSOR = r"([0-9]{1,16})\.(ach_[0-9a-f]{32})"
"""Microseconds since 1970, reference."""

_PAGE = """
    SELECT *, (extract(epoch FROM created_at) * 1000000)::bigint AS micros
    FROM ach_request WHERE account_id = $1
        AND ($2::text IS NULL OR reference_id = $2)
        AND ($3::bigint IS NULL OR (created_at, reference_id) <
        (timestamptz 'epoch' + $3 * interval '1 microsecond', $4::text))
    ORDER BY created_at DESC, reference_id DESC LIMIT $5
"""


class ListAch(CursorPage):
    reference_id: str | None = None


def list_ach(page_limit: int) -> Read[ListAch]:
    async def handle(connection: Connection, account_id: str, query: ListAch) -> object:
        await accounts.find(connection, account_id)
        limit = min(query.limit, page_limit)
        micros, reference_id = read_cursor(query.cursor, CURSOR) or (None, None)
        rows = await connection.fetch(
            _PAGE,
            account_id,
            query.reference_id,
            None if micros is None else int(micros),
            reference_id,
            limit + 1,
        )
        page = rows[:limit]
        last = page[-1] if len(rows) > limit else None
        return {
            "ach_requests": [ach.shape(row) for row in page],
            "next_cursor": None if last is None else f"{last['micros']}.{last['reference_id']}",
        }

    return Read("list_ach", "/accounts/{id}/ach", handle, ListAch)
