"""What operators read of differences and runs, and do about them. Not scoped by a tenant: operators act for all."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from libs.contracts.errors import InvalidState, NotFound
from libs.contracts.ids import id_of, parse_id
from libs.contracts.masking import masked
from libs.contracts.operating import differences as contract
from libs.contracts.operating import search
from libs.contracts.operating.pages import Listed, Place, cut
from libs.contracts.principal import Principal
from libs.contracts.result import Result
from libs.handling.operating.auditing import record
from libs.handling.queries import QueryHandler
from libs.persistence import cursor
from libs.persistence.engine import Database
from services.reconciliation.handlers import deposit_locations
from services.reconciliation.models import Side
from services.reconciliation.repository import differences, postings, recorded, runs
from services.reconciliation.repository.recorded import RecordedDifference
from services.reconciliation.repository.runs import Run
from services.reconciliation.settings import Settings

ACCOUNT_NUMBER = "account_number"
FIND_ID = search.FIND_ID_OF[Settings.service]


class OperatingDifferences:
    """The database bounds each statement."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def by_operation(self) -> Mapping[str, QueryHandler]:
        return {
            contract.LIST_DIFFERENCES.name: self.list_differences,
            contract.GET_DIFFERENCE.name: self.get_difference,
            contract.EXPLAIN_DIFFERENCE.name: self.explain,
            contract.REVEAL_DIFFERENCE.name: self.reveal,
            contract.START_RECONCILIATION.name: self.start_run,
            contract.LIST_RUNS.name: self.list_runs,
            contract.GET_RUN.name: self.get_run,
            FIND_ID.name: self.find_id,
        }

    async def list_differences(
        self, _: Principal, command: contract.ListOperatorDifferences, __: float
    ) -> Result:
        async with self._database.snapshot() as connection:
            found = await recorded.page(connection, command)
        page, following = cut(
            found, command.limit, lambda one: Place(one.first_seen, str(one.difference_id))
        )
        items = [_difference(one) for one in page]
        return Result(data=Listed[contract.OperatorDifference](items=items, next=following))

    async def get_difference(
        self, _: Principal, command: contract.GetOperatorDifference, __: float
    ) -> Result:
        difference_id = id_of(command.difference_id)
        async with self._database.transaction() as connection:
            found = await recorded.find(connection, difference_id)
        if found is None:
            raise NotFound
        return Result(data=_difference(found))

    async def explain(
        self, principal: Principal, command: contract.ExplainDifference, _: float
    ) -> Result:
        difference_id = id_of(command.difference_id)
        async with self._database.transaction() as connection:
            explained = await differences.explain(
                connection,
                difference_id,
                command.reason,
                principal.operator or "",
                command.revision,
            )
            found = await recorded.find(connection, difference_id)
            if found is None:
                raise NotFound
            if not explained and found.closed_as is None:
                raise InvalidState(
                    "The difference has changed since it was read, and has revision"
                    f" {found.revision} now: read it again."
                )
            if not explained:
                raise InvalidState(f"The difference is closed: {found.closed_as}.")
            await record(
                connection,
                principal,
                "differences.explain",
                difference_id=str(difference_id),
                reason=command.reason,
            )
        return Result(data=_difference(found))

    async def reveal(
        self, principal: Principal, command: contract.RevealDifference, _: float
    ) -> Result:
        difference_id = id_of(command.difference_id)
        async with self._database.transaction() as connection:
            found = await recorded.find(connection, difference_id)
            if found is None:
                raise NotFound
            ours, theirs = ((side or {}).get(ACCOUNT_NUMBER) for side in (found.ours, found.theirs))
            if ours is None and theirs is None:
                raise NotFound("Neither side of the difference has an account number.")
            await record(
                connection,
                principal,
                "differences.reveal",
                difference_id=str(difference_id),
                reason=command.reason,
            )
        return Result(data=contract.RevealedDifference(ours=ours, theirs=theirs))

    async def start_run(
        self, principal: Principal, command: contract.StartReconciliation, _: float
    ) -> Result:
        """Repeated before that run has begun, it names the same run."""
        async with self._database.transaction() as connection:
            if command.read_postings_again:
                await postings.forget(connection)
                await cursor.forget(connection, deposit_locations.STREAM)
            run_id = await runs.request_run(connection, "operator")
            run = await runs.find(connection, run_id)
            await record(
                connection,
                principal,
                "reconcile",
                run_id=str(run_id),
                read_postings_again=str(command.read_postings_again).lower(),
                reason=command.reason,
            )
        assert run is not None, "it was requested in this transaction"
        return Result(data=_run(run))

    async def list_runs(
        self, _: Principal, command: contract.ListReconciliationRuns, __: float
    ) -> Result:
        async with self._database.transaction() as connection:
            found = await runs.page(connection, command)
        page, following = cut(
            found, command.limit, lambda run: Place(run.requested_at, str(run.run_id))
        )
        items = [_run(run) for run in page]
        return Result(data=Listed[contract.ReconciliationRun](items=items, next=following))

    async def get_run(
        self, _: Principal, command: contract.GetReconciliationRun, __: float
    ) -> Result:
        run_id = id_of(command.run_id)
        async with self._database.transaction() as connection:
            found = await runs.find(connection, run_id)
        if found is None:
            raise NotFound
        return Result(data=_run(found))

    async def find_id(self, _: Principal, command: search.FindId, __: float) -> Result:
        difference_id = parse_id(command.q)
        if difference_id is None:
            return Result(data=search.FoundIds(found=[]))
        async with self._database.transaction() as connection:
            found = await recorded.find(connection, difference_id)
        return Result(data=search.FoundIds(found=[] if found is None else [_named(found)]))


def _difference(one: RecordedDifference) -> contract.OperatorDifference:
    return contract.OperatorDifference(
        difference_id=str(one.difference_id),
        comparison=one.comparison,
        kind=one.kind,
        subject=one.subject,
        ids=dict(one.ids),
        ours=_masked(one.ours),
        theirs=_masked(one.theirs),
        first_seen=one.first_seen,
        last_seen=one.last_seen,
        closed_at=one.closed_at,
        closed_as=one.closed_as,
        reason=one.reason,
        closed_by=one.closed_by,
        revision=one.revision,
    )


def _masked(side: Side) -> dict[str, Any] | None:
    """The side with its account number masked; `reveal` shows it whole."""
    if side is None:
        return None
    number = side.get(ACCOUNT_NUMBER)
    return dict(side) if number is None else {**side, ACCOUNT_NUMBER: masked(str(number))}


def _run(run: Run) -> contract.ReconciliationRun:
    return contract.ReconciliationRun(
        run_id=str(run.run_id),
        cause=run.cause,
        state=run.outcome or ("under_way" if run.started_at else "requested"),
        requested_at=run.requested_at,
        started_at=run.started_at,
        finished_at=run.finished_at,
        looked_at=run.looked_at,
        suspected=run.suspected,
        in_flight=run.in_flight,
        differing=run.differing,
    )


def _named(one: RecordedDifference) -> search.FoundId:
    return search.FoundId(
        service=Settings.service,
        kind=search.Kind.DIFFERENCE,
        id=str(one.difference_id),
        tenant=one.ids.get("tenant"),
        customer_id=one.ids.get("customer_id"),
        label=one.kind,
    )
