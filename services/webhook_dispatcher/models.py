"""Subscriptions and deliveries as they are stored."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import date, datetime
from uuid import UUID

from libs.contracts.webhook_views import BreakerRole, DeliveryStatus, SubscriptionStatus


@dataclass(frozen=True, slots=True, kw_only=True)
class SubscriptionRecord:
    """A subscription that is not deleted.

    Args:
        customer_id: None when the partner subscribed.
        secret: sealed, as is `previous_secret`.
        sequence: of the last event about the subscription itself.
    """

    id: UUID
    tenant: str
    customer_id: str | None
    event_type: str
    callback_url: str
    description: str
    status: SubscriptionStatus
    secret: bytes = field(repr=False)
    previous_secret: bytes | None = field(repr=False)
    previous_secret_expires_at: datetime | None
    sequence: int
    created_at: datetime
    updated_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class DeliveryRecord:
    """A delivery, whether or not it is over. `next_attempt_at` is None unless it is pending."""

    id: UUID
    subscription_id: UUID
    event_day: date
    event_id: UUID
    event_type: str
    status: DeliveryStatus
    attempts_made: int
    next_attempt_at: datetime | None
    circuit_breaker: BreakerRole | None
    created_at: datetime


@dataclass(frozen=True, slots=True)
class AttemptRecord:
    attempted_at: datetime
    duration_ms: int
    response_status: int | None
    error: str | None = field(repr=False)
    response_body: str | None = field(repr=False)
