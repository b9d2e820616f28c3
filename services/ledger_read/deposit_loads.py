"""Loads of deposit locations that are stored: each once, as it was when it was first seen."""

from __future__ import annotations

from sqlalchemy import bindparam, insert, select
from sqlalchemy.dialects.postgresql import insert as insert_or_keep

from libs.contracts.deposit_locations import DepositLocation, ListDepositLocations
from libs.persistence.engine import Database
from services.ledger_read.models import DepositLoad, Page
from services.ledger_read.tables import deposit_load, deposit_location

_ADD_LOAD = insert_or_keep(deposit_load).on_conflict_do_nothing()
_ADD_LOCATION = insert(deposit_location)
_OF_ACCOUNT = select(deposit_load.c.load_date, deposit_load.c.locations).where(
    deposit_load.c.account_id == bindparam("account_id")
)
_LATEST = _OF_ACCOUNT.order_by(deposit_load.c.load_date.desc()).limit(1)
_OF_DAY = _OF_ACCOUNT.where(deposit_load.c.load_date == bindparam("load_date"))
_LOCATIONS = (
    select(
        deposit_location.c.location_id,
        deposit_location.c.name,
        deposit_location.c.city_and_state,
        deposit_location.c.balance,
    )
    .where(
        deposit_location.c.account_id == bindparam("account_id"),
        deposit_location.c.load_date == bindparam("load_date"),
    )
    .order_by(deposit_location.c.location_id)
    .limit(bindparam("limit"))
    .offset(bindparam("skipped"))
)


class DepositLoads:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def add(self, load: DepositLoad) -> None:
        """Store the load, unless one of its day is stored."""
        day = {"account_id": load.account_id, "load_date": load.load_date}
        async with self._database.transaction() as connection:
            added = await connection.execute(_ADD_LOAD, day | {"locations": len(load.locations)})
            if added.rowcount == 1 and load.locations:
                rows = [
                    day
                    | {
                        "location_id": location.location_id,
                        "name": location.name,
                        "city_and_state": location.city_and_state,
                        "balance": location.balance,
                    }
                    for location in load.locations
                ]
                await connection.execute(_ADD_LOCATION, rows)

    async def page(self, command: ListDepositLocations) -> Page[DepositLocation]:
        """Of the load of the command's day, else of the latest one that is stored. A load never changes."""
        values = {"account_id": command.account_id}
        async with self._database.transaction() as connection:
            if command.load_date is None:
                loads = await connection.execute(_LATEST, values)
            else:
                loads = await connection.execute(_OF_DAY, values | {"load_date": command.load_date})
            load = loads.first()
            if load is None:
                return Page([], 0)
            rows = await connection.execute(
                _LOCATIONS,
                values
                | {
                    "load_date": load.load_date,
                    "limit": command.limit,
                    "skipped": (command.page - 1) * command.limit,
                },
            )
            found = [DepositLocation(**row._mapping) for row in rows]
        return Page(found, load.locations, load.load_date)
