"""Databases that went back behind what providers hold: list the open cases, declare a restore, close the cases."""

from __future__ import annotations

from libs.contracts import errors as e
from libs.contracts.operating import restores as contract
from libs.contracts.principal import Principal
from libs.contracts.result import Result
from libs.handling.operating.auditing import record
from libs.handling.queries import QueryHandler
from libs.persistence import continuity
from libs.persistence.engine import Database

RECORDS_SHOWN = 1000


class Restores:
    """The handlers of one service."""

    def __init__(self, service: str, database: Database) -> None:
        self._service = service
        self._database = database

    def by_operation(self) -> dict[str, QueryHandler]:
        return {
            contract.LIST_OF[self._service].name: self.list,
            contract.DECLARE_OF[self._service].name: self.declare,
            contract.CLOSE_OF[self._service].name: self.close,
        }

    async def list(self, _: Principal, __: contract.ListRestores, ___: float) -> Result:
        async with self._database.transaction() as connection:
            cases = await continuity.open_cases(connection)
        return Result(
            data=contract.Restores(
                restores=[
                    contract.Restore(
                        service=self._service,
                        since=case.first_seen_at,
                        missing=len(case.missing_records),
                        missing_records=[*case.missing_records[:RECORDS_SHOWN]],
                    )
                    for case in cases
                ]
            )
        )

    async def declare(
        self, principal: Principal, command: contract.DecideOnRestore, _: float
    ) -> Result:
        async with self._database.transaction() as connection:
            await continuity.declare(connection, f"{principal.actor}: {command.reason}")
            await record(connection, principal, "restores.declare", reason=command.reason)
        return Result(data=contract.RestoreDecided(service=self._service, closed=0))

    async def close(
        self, principal: Principal, command: contract.CloseRestores, _: float
    ) -> Result:
        async with self._database.transaction() as connection:
            closed = await continuity.close(connection, by=principal.actor, reason=command.reason)
            if not closed:
                raise e.InvalidState(f"Nothing is missing from the database of {self._service}.")
            if command.missing is not None and sum(closed) != command.missing:
                raise e.InvalidState(
                    f"{command.missing} records were seen to be missing, and there are {sum(closed)} by now: look at"
                    " the cases again. None is closed."
                )
            await record(connection, principal, "restores.close", reason=command.reason)
        return Result(data=contract.RestoreDecided(service=self._service, closed=len(closed)))
