"""What callers see of webhooks: subscriptions, their secrets, deliveries and the attempts at them."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

from pydantic import Field

from libs.contracts import fields as f
from libs.contracts.model import Model
from libs.contracts.sensitive import Sensitive


class SubscriptionStatus(StrEnum):
    ACTIVE = "active"
    DISABLED = "disabled"
    """By its owner: what happens is held."""
    UNAVAILABLE = "unavailable"
    """By us, since its endpoint is dead: what happens is held. Its owner makes it active again."""


class DeliveryStatus(StrEnum):
    PENDING = "pending"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    """For good: no further attempt is made."""
    HELD = "held"
    """The subscription was not active. `recover`, or making a disabled one active again, has it sent."""


class Subscription(Model):
    subscription_id: f.UuidText
    event_type: str
    callback_url: str
    description: str
    status: Annotated[SubscriptionStatus, Field(strict=False)]
    created_at: f.UtcDateTime
    updated_at: f.UtcDateTime


class SubscriptionSecret(Model):
    """What deliveries are signed with (Standard Webhooks). The one before is signed with too, until it expires."""

    secret: Annotated[str, Sensitive()]
    previous_secret_expires_at: f.UtcDateTime | None


class Delivery(Model):
    """One event on its way to one subscription. A resend is a delivery of its own."""

    delivery_id: f.UuidText
    event_id: str
    event_type: str
    status: Annotated[DeliveryStatus, Field(strict=False)]
    attempts_made: int
    next_attempt_at: f.UtcDateTime | None
    created_at: f.UtcDateTime


class DeliveryAttempt(Model):
    """`error` says why there was no answer; `response_body` has at most 16 KiB of the answer."""

    attempted_at: f.UtcDateTime
    duration_ms: int
    response_status: int | None
    error: str | None
    response_body: str | None


class DeliveryDetail(Delivery):
    attempts: list[DeliveryAttempt]


class Recovery(Model):
    """How many events are delivered once more."""

    scheduled: int


class SubscriptionEventData(Subscription):
    """The subscription as it was then; `customer_id` is null for one of the partner's own."""

    object: str = "webhook_subscription"
    customer_id: str | None
