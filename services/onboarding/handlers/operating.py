"""What operators read of customers and the steps of their sagas, and do about them.

Not scoped by a tenant: operators act for all.
"""

from __future__ import annotations

from collections.abc import Mapping

from libs.contracts.errors import NotFound
from libs.contracts.ids import id_of
from libs.contracts.operating import customers as contract
from libs.contracts.operating import saga_steps, search
from libs.contracts.operating.pages import Listed, Place, cut
from libs.contracts.principal import Principal
from libs.contracts.result import Result
from libs.handling.queries import QueryHandler
from libs.persistence.engine import Database
from services.onboarding import views
from services.onboarding.repository import found_ids, operating, operating_steps
from services.onboarding.repository.store import Store
from services.onboarding.resolving import resolve_step, settle_compensation
from services.onboarding.revealing import reveal
from services.onboarding.settings import Settings

FIND_ID = search.FIND_ID_OF[Settings.service]


class OperatingCustomers:
    """The database bounds each statement.

    Args:
        transit_seconds: a send of a step arrives within this time of its beginning, or never.
    """

    def __init__(self, database: Database, store: Store, *, transit_seconds: float) -> None:
        self._database = database
        self._store = store
        self._transit_seconds = transit_seconds

    def by_operation(self) -> Mapping[str, QueryHandler]:
        return {
            contract.LIST_CUSTOMERS.name: self.list_customers,
            contract.GET_CUSTOMER.name: self.get_customer,
            contract.REVEAL.name: self.reveal,
            saga_steps.LIST_STEPS.name: self.list_steps,
            saga_steps.RESOLVE_STEP.name: self.resolve_step,
            saga_steps.SETTLE_STEP.name: self.settle_step,
            FIND_ID.name: self.find_id,
        }

    async def list_customers(
        self, _: Principal, command: contract.ListOperatorCustomers, __: float
    ) -> Result:
        async with self._database.snapshot() as connection:
            found = await operating.page(connection, command)
        page, following = cut(found, command.limit, _place)
        return Result(
            data=Listed[contract.OperatorCustomerSummary](items=list(page), next=following)
        )

    async def get_customer(
        self, _: Principal, command: contract.GetOperatorCustomer, __: float
    ) -> Result:
        customer_id = id_of(command.customer_id)
        async with self._database.snapshot() as connection:
            customer = await self._store.customers.find_owner(connection, customer_id)
            if customer is None:
                raise NotFound
            [file] = await self._store.complete(connection, [customer])
            steps = await operating_steps.of_customer(connection, customer.tenant, customer_id)
        return Result(data=views.operator_customer(file, steps))

    async def reveal(self, principal: Principal, command: contract.Reveal, _: float) -> Result:
        value = await reveal(
            self._database, self._store, principal, id_of(command.customer_id), command
        )
        return Result(data=contract.Revealed(field=command.field, value=value))

    async def list_steps(
        self, _: Principal, command: saga_steps.ListSagaSteps, __: float
    ) -> Result:
        async with self._database.snapshot() as connection:
            found = await operating_steps.page(connection, command)
        page, following = cut(
            found, command.limit, lambda step: operating_steps.place_of(command.kind, step)
        )
        return Result(data=Listed[saga_steps.SagaStep](items=list(page), next=following))

    async def resolve_step(
        self, principal: Principal, command: saga_steps.ResolveStep, _: float
    ) -> Result:
        resolved = await resolve_step(
            self._database,
            principal,
            id_of(command.saga_id),
            command.step,
            command.resolution.value,
            reason=command.reason,
            transit_seconds=self._transit_seconds,
            result=command.result,
        )
        step = resolved.step
        return Result(
            data=saga_steps.ResolvedStep(
                saga_id=str(step.saga_id),
                step=step.step,
                tenant=step.tenant,
                customer_id=str(step.customer_id),
                operation=step.operation,
                command_id=None if step.command_id is None else str(step.command_id),
                first_sent_at=step.first_sent_at,
                last_asked_at=step.last_asked_at,
                resolution=command.resolution,
                is_open=resolved.is_open,
            )
        )

    async def settle_step(
        self, principal: Principal, command: saga_steps.SettleStep, _: float
    ) -> Result:
        saga_id = id_of(command.saga_id)
        await settle_compensation(
            self._database, principal, saga_id, command.step, reason=command.reason
        )
        return Result(
            data=saga_steps.SettledStep(saga_id=str(saga_id), step=command.step, settled=True)
        )

    async def find_id(self, _: Principal, command: search.FindId, __: float) -> Result:
        async with self._database.snapshot() as connection:
            found = await found_ids.find(connection, command.q)
        return Result(data=search.FoundIds(found=found))


def _place(customer: contract.OperatorCustomerSummary) -> Place:
    return Place(customer.created_at, customer.customer_id)
