"""Steps of sagas as operators see them, each with the command that attempted it last."""

from __future__ import annotations

from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import ColumnElement, Row, Select, Text, bindparam, false, func, select, tuple_

from libs.contracts.operating.pages import Order, Place, edge_of
from libs.contracts.operating.saga_steps import ListSagaSteps, SagaStep, StepCommand, StepKind
from libs.persistence.async_engine import AsyncConnection
from libs.persistence.keyset import beyond, in_order
from libs.persistence.tables import INSTANT, UUID_TYPE
from services.onboarding.repository.step_cases import IS_REFUSED_COMPENSATION, IS_UNKNOWN
from services.onboarding.tables import inbox, saga_steps

LARGEST_HISTORY = 500
"""Steps of one customer that are shown, at most: the latest."""
LAST_NAME = "\U0010ffff"
SEPARATOR = "/"
"""Between the two parts of a step's id in a page's place."""

_T = saga_steps.c
_STEP: Select[Any] = select(
    _T.saga_id,
    _T.name.label("step"),
    _T.tenant,
    _T.customer_id,
    _T.operation,
    _T.compensation,
    _T.state,
    IS_UNKNOWN.label("outcome_unknown"),
    _T.refusal_reason,
    _T.refusal_code,
    _T.intended_at,
    _T.first_sent_at,
    _T.last_attempt_at.label("last_asked_at"),
    _T.recorded_at,
    _T.settled_at,
    _T.resolution,
    _T.resolved_by,
    _T.resolution_reason,
    _T.resolved_at,
    _T.command_id,
    inbox.c.command_id.label("known_command"),
    inbox.c.attempts,
    inbox.c.last_error,
    inbox.c.due_at,
    func.coalesce(inbox.c.lease_until > func.clock_timestamp(), false()).label("is_driven"),
    inbox.c.parked_at,
    inbox.c.parked_because,
    inbox.c.finished_at,
).select_from(saga_steps.outerjoin(inbox, inbox.c.command_id == _T.command_id))
_OF_CUSTOMER = (
    _STEP.where(_T.tenant == bindparam("tenant"), _T.customer_id == bindparam("customer_id"))
    .order_by(_T.intended_at.desc(), _T.saga_id.desc(), _T.name.desc())
    .limit(LARGEST_HISTORY)
)
_EDGE = tuple_(
    bindparam("edge_at", type_=INSTANT),
    bindparam("edge_saga", type_=UUID_TYPE),
    bindparam("edge_name", type_=Text),
)


def _page(order: Order, at: ColumnElement[Any], condition: ColumnElement[bool]) -> Select[Any]:
    key = (at, _T.saga_id, _T.name)
    return (
        _STEP.where(condition, beyond(tuple_(*key), _EDGE, order))
        .order_by(*in_order(order, *key))
        .limit(bindparam("limit"))
    )


_PAGES = {
    **{(StepKind.UNKNOWN, each): _page(each, _T.first_sent_at, IS_UNKNOWN) for each in Order},
    **{
        (StepKind.REFUSED, each): _page(each, _T.recorded_at, IS_REFUSED_COMPENSATION)
        for each in Order
    },
}


async def of_customer(
    connection: AsyncConnection, tenant: str, customer_id: UUID
) -> list[SagaStep]:
    """The oldest first."""
    rows = await connection.execute(_OF_CUSTOMER, {"tenant": tenant, "customer_id": customer_id})
    return [_step(row) for row in reversed(rows.all())]


async def page(connection: AsyncConnection, query: ListSagaSteps) -> list[SagaStep]:
    """One row more than the page has, where there is one."""
    edge_at, edge_saga, edge_name = _edge(query.place, query.order)
    rows = await connection.execute(
        _PAGES[query.kind, query.order],
        {
            "edge_at": edge_at,
            "edge_saga": edge_saga,
            "edge_name": edge_name,
            "limit": query.limit + 1,
        },
    )
    return [_step(row) for row in rows]


def place_of(kind: StepKind, step: SagaStep) -> Place:
    at = step.first_sent_at if kind is StepKind.UNKNOWN else step.recorded_at
    assert at is not None, "the list is of steps that have this time"
    return Place(at, f"{step.saga_id}{SEPARATOR}{step.step}")


def _edge(place: Place | None, order: Order) -> tuple[datetime, UUID, str]:
    """What all rows of the page come after."""
    if place is None:
        return *edge_of(None, order), LAST_NAME if order is Order.NEWEST else ""
    saga_id, _, name = place.id.partition(SEPARATOR)
    return *edge_of(Place(place.at, saga_id), order), name


def _step(row: Row[Any]) -> SagaStep:
    return SagaStep(
        saga_id=str(row.saga_id),
        step=row.step,
        tenant=row.tenant,
        customer_id=str(row.customer_id),
        operation=row.operation,
        compensation=row.compensation,
        state=row.state,
        outcome_unknown=row.outcome_unknown,
        refusal_reason=row.refusal_reason,
        refusal_code=row.refusal_code,
        intended_at=row.intended_at,
        first_sent_at=row.first_sent_at,
        last_asked_at=row.last_asked_at,
        recorded_at=row.recorded_at,
        settled_at=row.settled_at,
        resolution=row.resolution,
        resolved_by=row.resolved_by,
        resolution_reason=row.resolution_reason,
        resolved_at=row.resolved_at,
        command_id=None if row.command_id is None else str(row.command_id),
        command=None if row.known_command is None else _command(row),
    )


def _command(row: Row[Any]) -> StepCommand:
    is_open = row.finished_at is None
    return StepCommand(
        command_id=str(row.known_command),
        attempts=row.attempts,
        last_error=row.last_error,
        next_attempt_at=row.due_at if is_open and row.parked_at is None else None,
        is_driven=row.is_driven,
        parked_because=row.parked_because,
        finished_at=row.finished_at,
    )
