"""An account's settlement calculations, newest first."""

from __future__ import annotations

from datetime import date

from pydantic import Field

from services.provider_sandbox import accounts, settlement
from services.provider_sandbox.calendar import AnyDay
from services.provider_sandbox.database import Connection, Row
from services.provider_sandbox.operations import Read
from services.provider_sandbox.pages import CursorPage, read_cursor

CURSOR = r"([0-9]{6})\.([0-9]{1,16})\.([0-9]{1,18})"
"""Day (as an ordinal), microseconds since 1970, number."""

_PAGE = """
    SELECT *, (extract(epoch FROM created_at) * 1000000)::bigint AS micros
    FROM settlement_calculation WHERE account_id = $1
        AND ($2::date IS NULL OR settlement_date >= $2)
        AND (source IS NULL OR $3::text IS NULL OR source = $3)
        AND ($4::date IS NULL OR (settlement_date, created_at, calculation_id) <
        ($4, timestamptz 'epoch' + $5::bigint * interval '1 microsecond', $6::bigint))
    ORDER BY settlement_date DESC, created_at DESC, calculation_id DESC LIMIT $7
"""


class ListSettlementCalculations(CursorPage):
    since: AnyDay | None = Field(default=None, alias="from")
    source: str | None = Field(default=None, alias="Source", max_length=255)
    """Whose calculations: the header. Those that were made for another source are left out."""


def list_settlement_calculations(page_limit: int) -> Read[ListSettlementCalculations]:
    async def handle(
        connection: Connection, account_id: str, query: ListSettlementCalculations
    ) -> object:
        account = await accounts.find(connection, account_id)
        if account["reserve_account_id"] is None:
            return {
                "account_id": account_id,
                "reserve_account_number": None,
                "calculations": [],
                "next_cursor": None,
            }
        reserve = await accounts.find(connection, account["reserve_account_id"])
        limit = min(query.limit, page_limit)
        day, micros, calculation_id = read_cursor(query.cursor, CURSOR) or (None, None, None)
        rows = await connection.fetch(
            _PAGE,
            account_id,
            query.since,
            query.source,
            None if day is None else date.fromordinal(int(day)),
            None if micros is None else int(micros),
            None if calculation_id is None else int(calculation_id),
            limit + 1,
        )
        page = rows[:limit]
        last = page[-1] if len(rows) > limit else None
        return {
            "account_id": account_id,
            "reserve_account_number": reserve["account_number"],
            "calculations": [settlement.shape(row) for row in page],
            "next_cursor": None if last is None else _cursor(last),
        }

    return Read(
        "list_settlement_calculations",
        "/accounts/{id}/settlement-calculations",
        handle,
        ListSettlementCalculations,
        headers=("Source",),
    )


def _cursor(last: Row) -> str:
    return f"{last['settlement_date'].toordinal()}.{last['micros']}.{last['calculation_id']}"
