"""What became of a request in payments: the histories of its wires, and what core banking was sent."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta

from libs.contracts.ids import parse_id
from libs.contracts.operating.requests import StepKind, TraceStep
from libs.handling.operating.request_steps import (
    LONGEST_NOTE,
    OwnSteps,
    Requested,
    waiting_event_step,
)
from libs.persistence import request_records
from libs.persistence.async_engine import AsyncConnection
from services.payments.repository import request_wires
from services.payments.repository.request_wires import RequestedWire
from services.payments.settings import Settings

SERVICE = Settings.service
ONE_SEND = timedelta(milliseconds=100)
"""A wire is not sent again so soon. In older rows the two marks of one send differ by less than this."""


async def find_own_steps(connection: AsyncConnection, request: Requested) -> OwnSteps:
    """Of a wire that the request approved or canceled, all of its history."""
    told = (data.get("transaction_id") for data in request.answered.values())
    ids = {command.command_id for command in request.commands}
    ids |= {found for each in told if isinstance(each, str) and (found := parse_id(each))}
    wires = await request_wires.find(connection, ids) if ids else []
    events, is_cut = await request_records.waiting_events_of(connection, request.request_id)
    return OwnSteps(
        [
            *_steps_of(wires),
            *(waiting_event_step(SERVICE, event) for event in events),
        ],
        resource_ids=[str(each.wire.transaction_id) for each in wires],
        is_cut=is_cut,
    )


def _steps_of(wires: Iterable[RequestedWire]) -> Iterator[TraceStep]:
    for each in wires:
        wire = each.wire
        for step in wire.history:
            yield TraceStep(
                at=step.at,
                service=SERVICE,
                kind=StepKind.WIRE,
                what=f"{wire.amount:.2f} USD",
                state=step.state.value,
                error=": ".join(filter(None, (step.reason, step.reason_detail))) or None,
                actor=step.by,
                tenant=wire.tenant,
                customer_id=wire.customer_id,
                transaction_id=str(wire.transaction_id),
                note=step.comment and step.comment[:LONGEST_NOTE],
            )
        if each.send_begun_at is not None and not wire.has_lost_sends_only:
            yield _send(each, each.send_begun_at, "first send to core banking")
        if (
            each.send_begun_at is not None
            and each.last_sent_at is not None
            and each.last_sent_at - each.send_begun_at > ONE_SEND
        ):
            yield _send(each, each.last_sent_at, "last send to core banking")


def _send(each: RequestedWire, at: datetime, what: str) -> TraceStep:
    wire = each.wire
    return TraceStep(
        at=at,
        service=SERVICE,
        kind=StepKind.PROVIDER_REQUEST,
        what=what,
        state="outcome unknown" if wire.is_unknown else "answered",
        transaction_id=str(wire.transaction_id),
        idempotency_key=str(wire.transaction_id),
    )
