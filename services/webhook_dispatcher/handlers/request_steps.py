"""What became of a request in webhook_dispatcher: its events and those of what it made, deliveries and attempts."""

from __future__ import annotations

from collections.abc import Mapping
from uuid import UUID

from libs.contracts.ids import parse_id
from libs.contracts.operating.requests import StepKind, TraceStep
from libs.contracts.webhook_views import DeliveryStatus
from libs.handling.operating.request_steps import OwnSteps, Requested
from libs.persistence.async_engine import AsyncConnection
from services.webhook_dispatcher.models import DeliveryRecord, SubscriptionRecord
from services.webhook_dispatcher.repository import operating, request_events
from services.webhook_dispatcher.repository import subscriptions as stored
from services.webhook_dispatcher.repository.request_events import RequestedAttempt, RequestedEvent

SERVICE = "webhook_dispatcher"
IS_OVER = frozenset({DeliveryStatus.SUCCEEDED, DeliveryStatus.FAILED})


async def find_own_steps(connection: AsyncConnection, request: Requested) -> OwnSteps:
    """A delivery that is over is shown by its attempts alone."""
    events, more_events = await request_events.events_of(
        connection, request.request_id, request.resource_ids
    )
    deliveries: list[DeliveryRecord] = []
    attempts: list[RequestedAttempt] = []
    more_deliveries = more_attempts = False
    if events:
        deliveries, more_deliveries = await request_events.deliveries_of(connection, events)
    subscriptions: list[SubscriptionRecord] = []
    for data in request.answered.values():
        subscription_id = parse_id(str(data.get("subscription_id")))
        if subscription_id is not None:
            found = await stored.find_of_any(connection, subscription_id)
            subscriptions += [found] if found is not None else []
        delivery_id = parse_id(str(data.get("delivery_id")))
        if delivery_id is not None and delivery_id not in {one.id for one in deliveries}:
            sent_again = await operating.find_delivery(connection, delivery_id)
            deliveries += [sent_again] if sent_again is not None else []
    if deliveries:
        attempts, more_attempts = await request_events.attempts_of(connection, deliveries)
    by_id = {one.id: one for one in deliveries}
    return OwnSteps(
        [
            *map(_subscription, subscriptions),
            *(_event(each, request.request_id) for each in events),
            *(_delivery(each) for each in deliveries if each.status not in IS_OVER),
            *(_attempt(each, by_id) for each in attempts),
        ],
        is_cut=more_events or more_deliveries or more_attempts,
    )


def _subscription(one: SubscriptionRecord) -> TraceStep:
    return TraceStep(
        at=one.updated_at,
        service=SERVICE,
        kind=StepKind.SUBSCRIPTION,
        what="last change",
        state=one.status,
        tenant=one.tenant,
        customer_id=one.customer_id,
        subscription_id=str(one.id),
        note="As it is now.",
    )


def _event(one: RequestedEvent, request_id: str) -> TraceStep:
    return TraceStep(
        at=one.recorded_at,
        service=SERVICE,
        kind=StepKind.EVENT,
        what=one.type,
        tenant=one.tenant,
        customer_id=one.customer_id,
        event_id=f"evt_{one.id}",
        resource_id=one.resource_id,
        request_id=one.request_id if one.request_id != request_id else None,
    )


def _delivery(one: DeliveryRecord) -> TraceStep:
    return TraceStep(
        at=one.created_at,
        service=SERVICE,
        kind=StepKind.DELIVERY,
        what=one.event_type,
        state=one.status,
        attempts=one.attempts_made,
        next_attempt_at=one.next_attempt_at,
        event_id=f"evt_{one.event_id}",
        subscription_id=str(one.subscription_id),
        delivery_id=str(one.id),
        note="It waits for the circuit breaker." if one.circuit_breaker == "waits" else None,
    )


def _attempt(one: RequestedAttempt, deliveries: Mapping[UUID, DeliveryRecord]) -> TraceStep:
    delivery = deliveries[one.delivery_id]
    return TraceStep(
        at=one.attempted_at,
        service=SERVICE,
        kind=StepKind.ATTEMPT,
        what=delivery.event_type,
        state=one.concluded or "failing",
        error=one.error,
        response_status=one.response_status,
        duration_ms=one.duration_ms,
        attempts=one.number,
        event_id=f"evt_{delivery.event_id}",
        subscription_id=str(delivery.subscription_id),
        delivery_id=str(delivery.id),
    )
