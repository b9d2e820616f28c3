"""Reconciliation's queries. They are not scoped by tenant: only services can ask, and they compare whole books."""

from __future__ import annotations

from collections.abc import Mapping

from libs.contracts import payments_operations as table
from libs.contracts import reconciliation as r
from libs.contracts.ids import parse_id
from libs.contracts.principal import Principal
from libs.contracts.result import Result
from libs.handling.feeds import feed_positions
from libs.handling.queries import QueryHandler
from libs.persistence.engine import Database
from services.payments.repository import reconciliation


class ReconcileQueries:
    """Deadlines are the caller's to keep. The database bounds each statement."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def by_operation(self) -> Mapping[str, QueryHandler]:
        return {
            table.PAGE_RECORDED_WIRES.name: self.page_wires,
            table.FIND_RECORDED_WIRES.name: self.find_wires,
            table.PAGE_CONTRADICTIONS.name: self.page_contradictions,
            table.FIND_CONTRADICTIONS.name: self.find_contradictions,
            table.LIST_FEED_POSITIONS.name: feed_positions(self._database),
        }

    async def page_wires(self, _: Principal, command: r.PageAfter, __: float) -> Result:
        after = parse_id(command.after) if command.after else None
        async with self._database.transaction() as connection:
            wires = await reconciliation.page_of_wires(connection, after, command.limit)
        more = len(wires) == command.limit
        return Result(
            data=r.RecordedWires(wires=wires, next_after=wires[-1].transaction_id if more else None)
        )

    async def find_wires(self, _: Principal, command: r.FindByIds, __: float) -> Result:
        ids = [parsed for text in command.ids if (parsed := parse_id(text)) is not None]
        async with self._database.transaction() as connection:
            wires = await reconciliation.wires_by_ids(connection, ids)
        return Result(data=r.RecordedWires(wires=wires, next_after=None))

    async def page_contradictions(
        self, _: Principal, command: r.PageContradictions, __: float
    ) -> Result:
        async with self._database.transaction() as connection:
            found = await reconciliation.page_of_contradictions(
                connection, command.after, command.limit
            )
        return Result(data=r.Contradictions(contradictions=found))

    async def find_contradictions(self, _: Principal, command: r.FindByIds, __: float) -> Result:
        ids = [int(text) for text in command.ids if text.isascii() and text.isdigit()]
        async with self._database.transaction() as connection:
            found = await reconciliation.contradictions_by_ids(connection, ids)
        return Result(data=r.Contradictions(contradictions=found))
