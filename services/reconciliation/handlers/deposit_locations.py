"""Each load of swept deposits: its locations together are what was swept."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from libs.persistence import cursor
from libs.persistence.async_engine import AsyncConnection
from libs.persistence.engine import Database
from services.reconciliation.handlers.comparison import Scan
from services.reconciliation.models import Difference, Finding, Scanned
from services.reconciliation.ports import DepositLoad, Financial

STREAM = "deposit_loads"
"""The bookmark: the position of the last load that was looked at."""
PAGE = 50
"""Loads that are looked at before the bookmark moves: each costs a request."""


class DepositLocationComparison:
    """Keys are positions of loads. A load never changes, so one that was found in order is not looked at again."""

    name = "deposit_locations"
    starts_anew = frozenset[str]()

    def __init__(self, database: Database, financial: Financial) -> None:
        self._database = database
        self._financial = financial

    @property
    def scans(self) -> Mapping[str, Scan]:
        return {"loads": self._new}

    async def _new(self, _: str | None, deadline: float) -> Scanned:
        async with self._database.transaction() as connection:
            bookmark = await cursor.read(connection, STREAM)
        loads = list(await self._financial.loads_after(bookmark, deadline))[:PAGE]
        if not loads:
            return Scanned(0, [], None)
        suspected = [str(load.position) for load in loads if await self._judge(load, deadline)]

        async def record(connection: AsyncConnection) -> None:
            await cursor.move(connection, STREAM, expected=bookmark, to=loads[-1].position)

        return Scanned(len(loads), suspected, str(loads[-1].position), record)

    async def look(self, keys: Sequence[str], deadline: float) -> Mapping[str, Finding]:
        return {key: await self._look(int(key), deadline) for key in keys}

    async def _look(self, position: int, deadline: float) -> Finding:
        loads = await self._financial.loads_after(position - 1, deadline)
        if not loads or loads[0].position != position:
            return []  # the provider has taken the load back
        return await self._judge(loads[0], deadline)

    async def _judge(self, load: DepositLoad, deadline: float) -> list[Difference]:
        count, total = await self._financial.location_total(
            load.account_id, load.load_date, deadline
        )
        if (count, total) == (load.locations, load.swept_total):
            return []
        return [
            Difference(
                "deposit_locations",
                f"{load.account_id}/{load.load_date}",
                {"account_id": load.account_id, "load_date": load.load_date},
                None,
                {
                    "swept_total": load.swept_total,
                    "locations": load.locations,
                    "located_total": total,
                    "located": count,
                },
            )
        ]
