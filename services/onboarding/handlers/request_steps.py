"""What became of a request in onboarding: the steps of its sagas at providers, and its customers as they are now."""

from __future__ import annotations

from libs.contracts.ids import parse_id
from libs.contracts.operating.requests import StepKind, TraceStep
from libs.handling.operating.request_steps import OwnSteps, Requested, waiting_event_step
from libs.persistence import request_records
from libs.persistence.async_engine import AsyncConnection
from services.onboarding.ids import derived
from services.onboarding.repository import request_sagas
from services.onboarding.repository.request_sagas import RequestedCustomer, RequestedStep
from services.onboarding.repository.sagas import saga_ids_of
from services.onboarding.settings import Settings

SERVICE = Settings.service


async def find_own_steps(connection: AsyncConnection, request: Requested) -> OwnSteps:
    """Of a customer its present state is shown; of one that the request made, all events."""
    sagas = {
        saga_id: command
        for command in request.commands
        for saga_id in saga_ids_of(command.command_id, command.message_id)
    }
    steps, is_cut = await request_sagas.steps_of(connection, [*sagas]) if sagas else ([], False)
    told = (data.get("customer_id") for data in request.answered.values())
    customer_ids = {step.customer_id for step in steps}
    customer_ids |= {derived(saga_id, "customer") for saga_id in sagas}
    customer_ids |= {found for each in told if isinstance(each, str) and (found := parse_id(each))}
    customers = await request_sagas.customers_of(connection, customer_ids) if customer_ids else []
    events, more_events = await request_records.waiting_events_of(connection, request.request_id)
    return OwnSteps(
        [
            *map(_saga_step, steps),
            *map(_customer, customers),
            *(waiting_event_step(SERVICE, event) for event in events),
        ],
        resource_ids=[str(one.customer_id) for one in customers if one.saga_id in sagas],
        is_cut=is_cut or more_events,
    )


def _saga_step(step: RequestedStep) -> TraceStep:
    state, note = step.state, "It takes an earlier step back." if step.compensation else None
    if step.is_unknown:
        state = "outcome unknown"
    if step.resolution is not None:
        note = f"An operator said that it is {step.resolution}: {step.resolution_reason}"
    return TraceStep(
        at=step.first_sent_at or step.intended_at,
        service=SERVICE,
        kind=StepKind.PROVIDER_REQUEST,
        what=step.name,
        state=state,
        error=step.refusal_code or step.refusal_reason,
        until=step.recorded_at,
        actor=step.resolved_by,
        tenant=step.tenant,
        customer_id=str(step.customer_id),
        command_id=None if step.command_id is None else str(step.command_id),
        saga_id=str(step.saga_id),
        idempotency_key=str(step.idempotency_key),
        note=note,
    )


def _customer(customer: RequestedCustomer) -> TraceStep:
    return TraceStep(
        at=customer.updated_at,
        service=SERVICE,
        kind=StepKind.CUSTOMER,
        what="last change",
        state=customer.status,
        tenant=customer.tenant,
        customer_id=str(customer.customer_id),
        note="As it is now.",
    )
