"""Reconciliation's answers to queries of other services."""

from __future__ import annotations

from libs.contracts.principal import Principal
from libs.contracts.reconciliation import RequestedRun, StartRun
from libs.contracts.result import Result
from libs.persistence.engine import Database
from services.reconciliation.repository import runs


class Queries:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def start_run(self, _: Principal, command: StartRun, __: float) -> Result:
        """Request a run. Repeated before that run began, it names the same run, so it travels as a query."""
        async with self._database.transaction() as connection:
            run_id = await runs.request_run(connection, command.cause)
        return Result(data=RequestedRun(run_id=str(run_id)))
