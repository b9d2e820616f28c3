"""Where the account's swept deposits lie, by one load: the latest, or that of a day."""

from __future__ import annotations

from services.provider_sandbox import accounts
from services.provider_sandbox.calendar import AnyDay
from services.provider_sandbox.database import Connection, Row
from services.provider_sandbox.encoding import money
from services.provider_sandbox.operations import Read
from services.provider_sandbox.pages import NumberedPage
from services.provider_sandbox.program_banks import program_bank

_LOAD = """
    SELECT load_date, locations FROM deposit_load
    WHERE account_id = $1 AND ($2::date IS NULL OR load_date = $2)
    ORDER BY load_date DESC LIMIT 1
"""
_PAGE = """
    SELECT location_id, balance FROM deposit_location
    WHERE account_id = $1 AND load_date = $2 ORDER BY location_id OFFSET $3 LIMIT $4
"""


class ListDepositLocations(NumberedPage):
    load_date: AnyDay | None = None


def list_deposit_locations(page_limit: int) -> Read[ListDepositLocations]:
    async def handle(
        connection: Connection, account_id: str, query: ListDepositLocations
    ) -> object:
        await accounts.find(connection, account_id)
        limit = min(query.limit, page_limit)
        load = await connection.fetchrow(
            _LOAD,
            account_id,
            query.load_date,
        )
        rows = await connection.fetch(
            _PAGE,
            account_id,
            None if load is None else load["load_date"],
            query.skipped(limit),
            limit,
        )
        return {
            "account_id": account_id,
            "locations": [_shape(row) for row in rows],
            "total": 0 if load is None else load["locations"],
            "page": query.page,
            "limit": limit,
            "as_of_date": None if load is None else load["load_date"].isoformat(),
        }

    path = "/accounts/{id}/deposit-locations"
    return Read("list_deposit_locations", path, handle, ListDepositLocations)


def _shape(location: Row) -> dict[str, object]:
    bank = program_bank(location["location_id"])
    return {
        "location_id": bank.location_id,
        "name": bank.name,
        "city": bank.city,
        "state": bank.state,
        "balance": money(location["balance"]),
    }
