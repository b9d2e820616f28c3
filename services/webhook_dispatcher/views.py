"""What callers and event receivers see of subscriptions and deliveries."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from libs.contracts import webhook_views as contract
from libs.contracts.events import EVENT_TYPES, Event, new_event
from services.webhook_dispatcher.models import AttemptRecord, DeliveryRecord, SubscriptionRecord


def subscription_view(record: SubscriptionRecord) -> contract.Subscription:
    return contract.Subscription(**_subscription(record))


def subscription_event(name: str, record: SubscriptionRecord, sequence: int) -> Event:
    """The event `webhook_subscription.<name>` about this subscription."""
    return new_event(
        EVENT_TYPES[f"webhook_subscription.{name}"],
        contract.SubscriptionEventData(**_subscription(record), customer_id=record.customer_id),
        tenant=record.tenant,
        customer_id=record.customer_id or "",
        resource_id=str(record.id),
        sequence=sequence,
        at=datetime.now(UTC),
    )


def delivery_view(record: DeliveryRecord) -> contract.Delivery:
    return contract.Delivery(**_delivery(record))


def delivery_detail(
    record: DeliveryRecord, attempts: list[AttemptRecord]
) -> contract.DeliveryDetail:
    return contract.DeliveryDetail(
        **_delivery(record),
        attempts=[
            contract.DeliveryAttempt(
                attempted_at=attempt.attempted_at,
                duration_ms=attempt.duration_ms,
                response_status=attempt.response_status,
                error=attempt.error,
                response_body=attempt.response_body,
            )
            for attempt in attempts
        ],
    )


def _subscription(record: SubscriptionRecord) -> dict[str, Any]:
    return {
        "subscription_id": str(record.id),
        "event_type": record.event_type,
        "callback_url": record.callback_url,
        "description": record.description,
        "status": record.status,
        "created_at": record.created_at,
        "updated_at": record.updated_at,
    }


def _delivery(record: DeliveryRecord) -> dict[str, Any]:
    return {
        "delivery_id": str(record.id),
        "event_id": f"evt_{record.event_id}",
        "event_type": record.event_type,
        "status": record.status,
        "attempts_made": record.attempts_made,
        "next_attempt_at": record.next_attempt_at,
        "circuit_breaker": record.circuit_breaker,
        "created_at": record.created_at,
    }
