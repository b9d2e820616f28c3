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


class DeliveryFilter(StrEnum):
    """A status, or `failing`: pending after a failed attempt."""

    PENDING = "pending"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    HELD = "held"
    FAILING = "failing"


class BreakerRole(StrEnum):
    """`waits`: the circuit breaker of the endpoint is open, and the delivery waits for it to close. `probe`: the next
    attempt, or the one under way, is made although it is open, and closes it if it is answered.
    """

    WAITS = "waits"
    PROBE = "probe"


class HealthState(StrEnum):
    HEALTHY = "healthy"
    SLOW = "slow"
    """It took 5 s or more: fewer deliveries are under way at a time."""
    BREAKER_OPEN = "breaker_open"
    """It could not be reached several times in a row: one delivery at a time probes it."""
    UNAVAILABLE = "unavailable"
    """It was given up: deliveries are held until the subscription is made active again."""


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
    """One event on its way to one subscription. A resend is a delivery of its own.

    `circuit_breaker` is null while that of the endpoint is closed, and where the delivery is not pending.
    """

    delivery_id: f.UuidText
    event_id: str
    event_type: str
    status: Annotated[DeliveryStatus, Field(strict=False)]
    attempts_made: int
    next_attempt_at: f.UtcDateTime | None
    circuit_breaker: Annotated[BreakerRole, Field(strict=False)] | None
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


class LastError(Model):
    """The last attempt that failed. `error` says why there was no answer; `at` is its time to about a minute."""

    at: f.UtcDateTime
    response_status: int | None
    error: str | None


class SubscriptionHealth(Model):
    """How the endpoint of a subscription has been doing since its URL was set, or it was made active again.

    Args:
        since: when it came into this state; null when that was before it was recorded.
        next_probe_at: when an open circuit breaker lets the next attempt through.
        pending: deliveries that wait, counted up to 10,000.
        failing: those of them of which an attempt has failed, likewise.
    """

    state: Annotated[HealthState, Field(strict=False)]
    since: f.UtcDateTime | None
    last_success_at: f.UtcDateTime | None
    last_error: LastError | None
    next_probe_at: f.UtcDateTime | None
    pending: int
    failing: int


class Recovery(Model):
    """How many events are delivered once more."""

    scheduled: int


class SubscriptionEventData(Subscription):
    """The subscription as it was then; `customer_id` is null for one of the partner's own."""

    object: str = "webhook_subscription"
    customer_id: str | None
