"""What operators see of subscriptions, deliveries and events."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from uuid import UUID

from libs.contracts import webhook_views
from libs.contracts.event_views import DeliveredEvent
from libs.contracts.exact_json import decode
from libs.contracts.operating import search
from libs.contracts.operating import webhooks as contract
from libs.contracts.operating.pages import Place
from libs.contracts.webhook_views import SubscriptionStatus
from services.webhook_dispatcher import views
from services.webhook_dispatcher.delivery_headers import headers_of
from services.webhook_dispatcher.models import AttemptRecord, DeliveryRecord, SubscriptionRecord
from services.webhook_dispatcher.repository.health import SubscribedEndpoint
from services.webhook_dispatcher.repository.operating_events import EventRecord
from services.webhook_dispatcher.repository.request_events import RequestedEvent

SERVICE = "webhook_dispatcher"
NOT_SHOWN = "(not shown)"


def place_of_subscription(one: SubscribedEndpoint) -> Place:
    return Place(one.subscription.created_at, str(one.subscription.id))


def place_of_id(subscription_id: UUID) -> Place:
    """Of a subscription that is not on the page. Lists of subscriptions go on by the id alone."""
    return Place(datetime.fromtimestamp(0, UTC), str(subscription_id))


def subscription_view(one: SubscribedEndpoint) -> contract.OperatorSubscription:
    record = one.subscription
    return contract.OperatorSubscription(
        subscription_id=str(record.id),
        tenant=record.tenant,
        customer_id=record.customer_id,
        event_type=record.event_type,
        callback_url=record.callback_url,
        description=record.description,
        status=record.status,
        health_state=one.state,
        created_at=record.created_at,
        updated_at=record.updated_at,
    )


def subscription_detail(
    one: SubscribedEndpoint, health: webhook_views.SubscriptionHealth, now: datetime
) -> contract.OperatorSubscriptionDetail:
    known, expires_at = one.health, one.subscription.previous_secret_expires_at
    return contract.OperatorSubscriptionDetail(
        **dict(subscription_view(one)),
        health=health,
        breaker=contract.Breaker(
            state=_breaker(known.open_until, now),
            open_until=known.open_until,
            open_seconds=known.probe_seconds,
            unreachable_in_a_row=known.unreachable_in_a_row,
        ),
        failing_since=known.failing_since,
        failed_events=known.failed_events,
        previous_secret_expires_at=expires_at if expires_at and expires_at > now else None,
    )


def _breaker(open_until: datetime | None, now: datetime) -> contract.BreakerState:
    if open_until is None:
        return contract.BreakerState.CLOSED
    return contract.BreakerState.OPEN if open_until > now else contract.BreakerState.HALF_OPEN


def delivery_view(
    record: DeliveryRecord, status: SubscriptionStatus | None
) -> contract.OperatorDelivery:
    """`status`: of its subscription."""
    return contract.OperatorDelivery(
        **dict(views.delivery_view(record)),
        subscription_id=str(record.subscription_id),
        subscription_status=status,
    )


def delivery_detail(
    record: DeliveryRecord,
    subscription: SubscriptionRecord,
    attempts: Sequence[AttemptRecord],
    body: bytes | None,
) -> contract.OperatorDeliveryDetail:
    return contract.OperatorDeliveryDetail(
        **dict(delivery_view(record, subscription.status)),
        callback_url=subscription.callback_url,
        body=None if body is None else body.decode(),
        attempts=[
            contract.OperatorAttempt(
                attempted_at=attempt.attempted_at,
                duration_ms=attempt.duration_ms,
                response_status=attempt.response_status,
                error=attempt.error,
                response_body=attempt.response_body,
                request_headers=headers_of(record.event_id, attempt.attempted_at, NOT_SHOWN),
            )
            for attempt in attempts
        ],
    )


def event_view(record: EventRecord) -> contract.OperatorEvent:
    return contract.OperatorEvent(
        event_id=f"evt_{record.id}",
        type=record.type,
        tenant=record.tenant,
        customer_id=record.customer_id,
        resource_id=record.resource_id,
        sequence=record.sequence,
        recorded_at=record.recorded_at,
    )


def event_detail(
    record: EventRecord,
    deliveries: Sequence[DeliveryRecord],
    statuses: Mapping[UUID, SubscriptionStatus],
) -> contract.OperatorEventDetail:
    """`statuses`: of the subscriptions that are not deleted, by id."""
    delivered = decode(record.body or b"null")
    return contract.OperatorEventDetail(
        **dict(event_view(record)),
        event=DeliveredEvent.model_validate(delivered, strict=False, extra="ignore"),
        deliveries=[delivery_view(one, statuses.get(one.subscription_id)) for one in deliveries],
    )


def found_command(command_id: UUID, operation: str, request_id: str) -> search.FoundId:
    return search.FoundId(
        service=SERVICE,
        kind=search.Kind.COMMAND,
        id=str(command_id),
        label=operation,
        request_id=request_id,
    )


def found_event(record: EventRecord | RequestedEvent) -> search.FoundId:
    return search.FoundId(
        service=SERVICE,
        kind=search.Kind.EVENT,
        id=f"evt_{record.id}",
        tenant=record.tenant,
        customer_id=record.customer_id,
        label=record.type,
    )


def found_subscription(record: SubscriptionRecord) -> search.FoundId:
    return search.FoundId(
        service=SERVICE,
        kind=search.Kind.SUBSCRIPTION,
        id=str(record.id),
        tenant=record.tenant,
        customer_id=record.customer_id,
        label=f"{record.event_type}, {record.status}",
    )


def found_delivery(record: DeliveryRecord, subscription: SubscriptionRecord) -> search.FoundId:
    return search.FoundId(
        service=SERVICE,
        kind=search.Kind.DELIVERY,
        id=str(record.id),
        tenant=subscription.tenant,
        customer_id=subscription.customer_id,
        label=f"{record.event_type}, {record.status}",
        subscription_id=str(subscription.id),
    )
