"""What callers see of webhooks: subscriptions, their secrets, deliveries and the attempts at them."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Literal

from pydantic import Field

from libs.contracts import fields as f
from libs.contracts.model import Model
from libs.contracts.sensitive import Sensitive


class SubscriptionStatus(StrEnum):
    """Whether events are delivered: `disabled` by the owner and `unavailable` by us have them held."""

    ACTIVE = "active"
    DISABLED = "disabled"
    """Disabled by its owner: deliveries are held."""
    UNAVAILABLE = "unavailable"
    """Made unavailable by us, since its endpoint is dead: deliveries are held. Its owner makes it active again, then
    recovers them.
    """


class DeliveryStatus(StrEnum):
    """How far a delivery has come."""

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
    """`waits`: the endpoint's circuit breaker is open, or half-open, and this delivery is not its probe. `probe`: the
    breaker is half-open and this delivery is its probe: an HTTP answer closes it.
    """

    WAITS = "waits"
    PROBE = "probe"


class HealthState(StrEnum):
    """How an endpoint is doing."""

    HEALTHY = "healthy"
    SLOW = "slow"
    """It took 5 s or more: fewer deliveries are under way at a time."""
    BREAKER_OPEN = "breaker_open"
    """It could not be reached several times in a row: one delivery at a time probes it."""
    UNAVAILABLE = "unavailable"
    """It was given up: deliveries are held, also after the subscription is made active again, until `recover`."""


class Subscription(Model):
    """A callback URL and the events that are posted to it."""

    subscription_id: f.UuidText
    event_type: str
    """Which events: the `event_types` of the request."""
    callback_url: str
    """Where they are posted."""
    description: str
    """The caller's note."""
    status: Annotated[SubscriptionStatus, Field(strict=False)]
    """Whether events are delivered: `disabled` by its owner, `unavailable` by us, since its endpoint is dead."""
    created_at: f.UtcDateTime
    updated_at: f.UtcDateTime


class SubscriptionSecret(Model):
    """What deliveries are signed with (Standard Webhooks). After a rotation they are signed with the secret before,
    too, until it expires.
    """

    secret: Annotated[str, Sensitive()]
    """`whsec_` and 32 bytes in base64. The HMAC's key is those bytes: decode the part after `whsec_`."""
    previous_secret_expires_at: f.UtcDateTime | None
    """When the secret before stops signing; null when there is none."""


class Delivery(Model):
    """One event on its way to one subscription. A resend is a delivery of its own."""

    delivery_id: f.UuidText
    event_id: str
    event_type: str
    """The type of the event."""
    status: Annotated[DeliveryStatus, Field(strict=False)]
    """How far it has come: `failed` is for good. `held` waits: of a disabled subscription until it is active again, of
    one that became unavailable until `recover`.
    """
    attempts_made: int
    """How many attempts were made."""
    next_attempt_at: f.UtcDateTime | None
    """When the next attempt is due; null when there is none."""
    circuit_breaker: Annotated[BreakerRole, Field(strict=False)] | None
    """`waits`: the endpoint's circuit breaker is open, or half-open, and this delivery is not its probe. `probe`: the
    breaker is half-open and this delivery is its probe: an HTTP answer closes it. Null while the breaker is closed, and
    where the delivery is not pending.
    """
    created_at: f.UtcDateTime


class DeliveryAttempt(Model):
    """One request to the callback URL."""

    attempted_at: f.UtcDateTime
    """When it began."""
    duration_ms: int
    """How long it took, in milliseconds."""
    response_status: int | None
    """The HTTP status of the answer, also of one that broke off; null where none began."""
    error: str | None
    """Why it failed, where the status does not say it: no answer, one that broke off, or a redirect, which is not
    followed. Null otherwise.
    """
    response_body: str | None
    """At most 16 KiB of the answer; null without one, and where this answer and those to later attempts are more than
    64 KiB together.
    """


class DeliveryDetail(Delivery):
    """A delivery with its attempts."""

    attempts: list[DeliveryAttempt]
    """The newest 40 attempts, oldest first."""


class LastError(Model):
    """The last attempt that failed."""

    at: f.UtcDateTime
    """When, to about a minute."""
    response_status: int | None
    """The HTTP status of the answer, also of one that broke off; null where none began."""
    error: str | None
    """Why it failed, where the status does not say it: no answer, one that broke off, or a redirect, which is not
    followed. Null otherwise.
    """


class SubscriptionHealth(Model):
    """How the endpoint of a subscription has been doing since its URL was set, or it was made active again."""

    state: Annotated[HealthState, Field(strict=False)]
    """How it is doing. `slow`: it took 5 s or more, so that fewer deliveries are under way at a time. `breaker_open`:
    it could not be reached several times in a row, and one delivery at a time probes it. `unavailable`: it was given
    up, and deliveries are held.
    """
    since: f.UtcDateTime | None
    """When it came into this state; null when that was before it was recorded."""
    last_success_at: f.UtcDateTime | None
    """When it last answered with 2xx."""
    last_error: LastError | None
    """The last attempt that failed."""
    next_probe_at: f.UtcDateTime | None
    """When an open circuit breaker lets the next attempt through."""
    pending: int
    """Deliveries that wait, counted up to 10,000."""
    failing: int
    """Those of them of which an attempt has failed, likewise."""


class Recovery(Model):
    """What a recovery does."""

    scheduled: int
    """How many events are delivered once more."""


class SubscriptionEventData(Subscription):
    """The subscription as it was then, in events."""

    object: Literal["webhook_subscription"] = "webhook_subscription"
    customer_id: str | None
    """The business whose subscription it is; null for one of the partner's own."""
