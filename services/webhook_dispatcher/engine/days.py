"""The partitions that are written to, made before they are needed."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import date

from libs.persistence.engine import Database
from services.webhook_dispatcher.repository import partitions
from services.webhook_dispatcher.repository.partitions import Partitioned


class Days:
    """Remembers which partitions there are, so that asking for one that is there costs nothing."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._known: dict[Partitioned, set[date]] = {"event": set(), "attempt": set()}

    async def ensure(self, table: Partitioned, days: Iterable[date]) -> None:
        """Have a partition for each of the days, before the transaction that writes to them."""
        missing = set(days) - self._known[table]
        if missing:
            async with self._database.transaction() as connection:
                await partitions.make(connection, table, missing)
            self._known[table] |= missing

    async def today(self) -> date:
        """The UTC day by the database's clock: processes need not agree what time it is."""
        async with self._database.transaction() as connection:
            return await partitions.today(connection)

    def forget(self) -> None:
        """Some may have been dropped."""
        for known in self._known.values():
            known.clear()
