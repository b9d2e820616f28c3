"""Webhooks and events of all tenants as operators see them, and what they do about them."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from http import HTTPMethod
from typing import Annotated, Any

from pydantic import Field, StringConstraints

from libs.contracts import errors as e
from libs.contracts import fields as f
from libs.contracts import webhook_views as views
from libs.contracts.event_views import DeliveredEvent, EventFilter
from libs.contracts.model import BrokenRule, Command, Model
from libs.contracts.operating.pages import Listed, ListPage, Write
from libs.contracts.operation import Operation, declared_in
from libs.contracts.principal import Role
from libs.contracts.webhooks import broken_recovery


class SubscriptionCondition(StrEnum):
    """Which subscriptions are meant: by their status, by the health of their endpoint (`slow`, `breaker_open`), or
    because they have deliveries that are pending after a failed attempt (`failing`).
    """

    ACTIVE = "active"
    DISABLED = "disabled"
    UNAVAILABLE = "unavailable"
    SLOW = "slow"
    BREAKER_OPEN = "breaker_open"
    FAILING = "failing"


class ListOperatorSubscriptions(ListPage):
    """By their creation. Those that were deleted are not listed."""

    tenant: f.FilterId | None = None
    state: Annotated[SubscriptionCondition, Field(strict=False)] | None = None
    """Only subscriptions of which this is true."""


class GetOperatorSubscription(Command):
    """A subscription of any tenant, without its secrets."""

    subscription_id: str


class ListOperatorDeliveries(ListPage):
    """By their creation."""

    subscription_id: str
    status: Annotated[views.DeliveryFilter, Field(strict=False)] | None = None
    """Only deliveries with this status."""


class GetOperatorDelivery(Command):
    """A delivery with the bodies and headers that were sent and received."""

    subscription_id: str
    delivery_id: str


class OperatorResend(Write):
    """Deliver an event once more, also one that was delivered. The attempt is made now."""

    subscription_id: str
    delivery_id: str


class OperatorRecover(Write):
    """As a subscriber's `recover`: both inclusive; `until` is now by default.

    Args:
        after: the `next` of a request whose time ended before the recovery was done, with the same `since`.
    """

    subscription_id: str
    since: f.UtcDateTime
    """What failed or was held at this time or later: an event fails for good days after it was recorded."""
    until: f.UtcDateTime | None = None
    """What failed or was held at this time or earlier; now by default."""
    after: Annotated[str, StringConstraints(min_length=1, max_length=1024)] | None = None

    @classmethod
    def broken_rules(cls, values: Mapping[str, Any]) -> list[BrokenRule]:
        return broken_recovery(values)


class DisableSubscription(Write):
    """Deliveries are held until the subscriber makes the subscription active again."""

    subscription_id: str


class ListOperatorEvents(ListPage):
    """By when they were recorded.

    Args:
        event_type: a type, a kind or `*`.
        resource_id: of what they are about: the `transaction_id` of a wire, a customer, an account and so on.
    """

    tenant: f.FilterId | None = None
    event_type: EventFilter | None = None
    resource_id: f.FilterId | None = None


class GetOperatorEvent(Command):
    """An event of any tenant."""

    event_id: str


class OperatorRecovery(views.Recovery):
    """What was scheduled by a recovery so far.

    Args:
        scheduled: so far, those of the requests before that it goes on from included.
        next: the `after` of the request that goes on; null when the recovery is done.
    """

    next: str | None = None  # of a release that has none every recovery is done


class OperatorSubscription(Model):
    """A subscription with its owner."""

    subscription_id: f.UuidText
    tenant: str
    customer_id: str | None
    """The customer that subscribed; null where the partner itself did."""
    event_type: str
    """What it is subscribed to: a type, a kind or `*`."""
    callback_url: str
    """Where events are posted."""
    description: str
    """The subscriber's own words for it."""
    status: Annotated[views.SubscriptionStatus, Field(strict=False)]
    """Whether events are posted: `active`; by the subscriber's wish not, `disabled`; since the endpoint is dead,
    `unavailable`.
    """
    health_state: Annotated[views.HealthState, Field(strict=False)]
    """How its endpoint is doing."""
    created_at: f.UtcDateTime
    updated_at: f.UtcDateTime


class BreakerState(StrEnum):
    """`open`: no attempt is made. `half_open`: one attempt at a time probes the endpoint."""

    CLOSED = "closed"
    OPEN = "open"
    HALF_OPEN = "half_open"


class Breaker(Model):
    """The circuit breaker of an endpoint.

    Args:
        open_until: null while it is closed.
        open_seconds: how long it was opened the last time; null while it is closed.
        unreachable_in_a_row: attempts without an answer since the last one that was answered.
    """

    state: BreakerState
    """Whether attempts are made."""
    open_until: f.UtcDateTime | None
    open_seconds: float | None
    unreachable_in_a_row: int


class OperatorSubscriptionDetail(OperatorSubscription):
    """A subscription with the state of its endpoint.

    Args:
        failing_since: when the first event since the last success failed for good.
        failed_events: how many have failed for good since.
        previous_secret_expires_at: until when the secret before the last rotation signs as well.
    """

    health: views.SubscriptionHealth
    """How its endpoint did of late."""
    breaker: Breaker
    """The circuit breaker of its endpoint."""
    failing_since: f.UtcDateTime | None
    failed_events: int
    previous_secret_expires_at: f.UtcDateTime | None


class OperatorAttempt(views.DeliveryAttempt):
    """An attempt with the headers that were sent; what proves our identity is left out of them."""

    request_headers: dict[str, str]
    """The headers that were sent, by name."""


class OperatorDelivery(views.Delivery):
    """A delivery of an event to a subscription."""

    subscription_id: f.UuidText
    subscription_status: Annotated[views.SubscriptionStatus, Field(strict=False)] | None = None
    """A delivery of an active one alone can be sent again. Null of one that was deleted, and where a service of the
    release before answered.
    """


class OperatorDeliveryDetail(OperatorDelivery):
    """A delivery with its attempts."""

    callback_url: str
    """Where the subscription's events are posted now; an earlier attempt may have gone to the URL before."""
    body: str | None
    """What was sent, byte for byte; null when its event is kept no longer."""
    attempts: list[OperatorAttempt]
    """The newest 40 attempts, the oldest first."""


class OperatorEvent(Model):
    """An event."""

    event_id: str
    type: str
    """The event's type, such as `wire.completed`."""
    tenant: str
    customer_id: str | None
    """The customer that it is about; null for an event of the partner itself."""
    resource_id: str
    sequence: int
    """Its number among the events of the same resource, from 1 on."""
    recorded_at: f.UtcDateTime
    """When the dispatcher had it."""


class OperatorEventDetail(OperatorEvent):
    """An event with its deliveries."""

    event: DeliveredEvent
    """The event as it is delivered."""
    deliveries: list[OperatorDelivery]
    """To every subscription, the oldest first, 100 at most."""


_SUBSCRIPTIONS = "/operator/subscriptions"
_SUBSCRIPTION = f"{_SUBSCRIPTIONS}/{{subscription_id}}"
_DELIVERY = f"{_SUBSCRIPTION}/deliveries/{{delivery_id}}"

LIST_SUBSCRIPTIONS = Operation(
    name="webhook_dispatcher.operator_list_subscriptions",
    method=HTTPMethod.GET,
    path=_SUBSCRIPTIONS,
    role=Role.VIEWER,
    command=ListOperatorSubscriptions,
    reply=Listed[OperatorSubscription],
    message="Webhook subscriptions found",
    summary="List webhook subscriptions of all tenants",
)
GET_SUBSCRIPTION = Operation(
    name="webhook_dispatcher.operator_get_subscription",
    method=HTTPMethod.GET,
    path=_SUBSCRIPTION,
    role=Role.VIEWER,
    command=GetOperatorSubscription,
    reply=OperatorSubscriptionDetail,
    message="Webhook subscription found",
    errors=(e.NotFound,),
    summary="Get a subscription with its health and circuit breaker",
)
LIST_DELIVERIES = Operation(
    name="webhook_dispatcher.operator_list_deliveries",
    method=HTTPMethod.GET,
    path=f"{_SUBSCRIPTION}/deliveries",
    role=Role.VIEWER,
    command=ListOperatorDeliveries,
    reply=Listed[OperatorDelivery],
    message="Deliveries found",
    errors=(e.NotFound,),
    summary="List a subscription's deliveries",
)
GET_DELIVERY = Operation(
    name="webhook_dispatcher.operator_get_delivery",
    method=HTTPMethod.GET,
    path=_DELIVERY,
    role=Role.VIEWER,
    command=GetOperatorDelivery,
    reply=OperatorDeliveryDetail,
    message="Delivery found",
    errors=(e.NotFound,),
    summary="Get a delivery with its attempts: what was sent, and what was answered",
)
RESEND = Operation(
    name="webhook_dispatcher.operator_resend",
    operation_id="resendDelivery",
    method=HTTPMethod.POST,
    path=f"{_DELIVERY}/resend",
    role=Role.OPERATOR,
    command=OperatorResend,
    reply=OperatorDelivery,
    message="Delivery scheduled",
    errors=(e.NotFound, e.InvalidState),
    summary="Deliver an event to a subscription once more, at once",
)
RECOVER = Operation(
    name="webhook_dispatcher.operator_recover",
    operation_id="recoverSubscription",
    method=HTTPMethod.POST,
    path=f"{_SUBSCRIPTION}/recover",
    role=Role.OPERATOR,
    command=OperatorRecover,
    reply=OperatorRecovery,
    message="Recovery scheduled",
    errors=(e.NotFound, e.InvalidState),
    summary="Deliver every event that failed or was held in a time once more, as many as one request has time for",
)
DISABLE = Operation(
    name="webhook_dispatcher.operator_disable",
    operation_id="disableSubscription",
    method=HTTPMethod.POST,
    path=f"{_SUBSCRIPTION}/disable",
    role=Role.OPERATOR,
    command=DisableSubscription,
    reply=OperatorSubscription,
    message="Webhook subscription disabled",
    errors=(e.NotFound, e.InvalidState),
    summary="Stop deliveries to a subscription until its owner makes it active again",
)
LIST_EVENTS = Operation(
    name="webhook_dispatcher.operator_list_events",
    method=HTTPMethod.GET,
    path="/operator/events",
    role=Role.VIEWER,
    command=ListOperatorEvents,
    reply=Listed[OperatorEvent],
    message="Events found",
    summary="List events of all tenants",
)
GET_EVENT = Operation(
    name="webhook_dispatcher.operator_get_event",
    method=HTTPMethod.GET,
    path="/operator/events/{event_id}",
    role=Role.VIEWER,
    command=GetOperatorEvent,
    reply=OperatorEventDetail,
    message="Event found",
    errors=(e.NotFound,),
    summary="Get an event with its deliveries",
)

OPERATIONS = declared_in(globals(), Operation)
