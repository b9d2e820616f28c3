"""The rows of webhook_dispatcher: webhooks and events, the same for both families.

A customer has subscriptions to its own events, a partner to those of all its customers; neither sees the other's
subscriptions.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from http import HTTPMethod
from typing import Any, Generic

from libs.contracts import errors as e
from libs.contracts import event_views, webhook_views, webhooks
from libs.contracts.operation import (
    C,
    Operation,
    PageInfo,
    R,
    Resource,
    declared_in,
    operation_id_of,
)
from libs.contracts.principal import Family, Scope

PREFIXES = {Family.CUSTOMER: "/customer", Family.PARTNER: "/partner/reseller"}


@dataclass(frozen=True, slots=True)
class FamilyPair(Generic[C, R]):
    """One operation as a row of each family."""

    customer: Operation[C, R]
    partner: Operation[C, R]

    def of(self, family: Family) -> Operation[C, R]:
        return self.customer if family is Family.CUSTOMER else self.partner

    def __iter__(self) -> Iterator[Operation[C, R]]:
        return iter((self.customer, self.partner))


def _for_both_families(
    verb: str,
    noun: str,
    method: HTTPMethod,
    path: str,
    *,
    command: type[C],
    reply: type[R] | None,
    numbered: bool = False,
    shown_as: str = "",
    **row: Any,
) -> FamilyPair[C, R]:
    """`<verb>_customer_<noun>` and `<verb>_partner_<noun>`.

    Args:
        path: below the prefix of the family.
        numbered: the customer's is one of the interface's numbered endpoints.
        shown_as: the noun of the operation's id in the document, where it is another one.
    """
    rows = (
        Operation(
            name=f"webhook_dispatcher.{verb}_{family}_{noun}",
            operation_id=operation_id_of(f"{verb}_{family}_{shown_as or noun}"),
            resource=Resource.EVENTS if path.startswith(_EVENTS) else Resource.WEBHOOKS,
            method=method,
            path=PREFIXES[family] + path,
            command=command,
            reply=reply,
            extension=not (numbered and family is Family.CUSTOMER),
            **row,
        )
        for family in (Family.CUSTOMER, Family.PARTNER)
    )
    return FamilyPair(*rows)


_EVENTS = "/events"
_SUBSCRIPTIONS = "/webhooks/subscriptions"
_SUBSCRIPTION = f"{_SUBSCRIPTIONS}/{{subscription_id}}"
_DELIVERIES = f"{_SUBSCRIPTION}/deliveries"
_DELIVERY = f"{_DELIVERIES}/{{delivery_id}}"

CREATE_SUBSCRIPTION = _for_both_families(
    "create",
    "subscription",
    HTTPMethod.POST,
    _SUBSCRIPTIONS,
    numbered=True,
    scope=Scope.WEBHOOKS_WRITE,
    command=webhooks.CreateSubscription,
    reply=webhook_views.Subscription,
    message="Webhook subscription created",
    errors=(e.InvalidState,),
    summary="Subscribe a callback URL to a kind of event",
)
LIST_SUBSCRIPTIONS = _for_both_families(
    "list",
    "subscriptions",
    HTTPMethod.GET,
    _SUBSCRIPTIONS,
    scope=Scope.WEBHOOKS_READ,
    command=webhooks.ListSubscriptions,
    reply=list[webhook_views.Subscription],
    message="Webhook subscriptions found",
    summary="List the subscriptions, newest first",
)
GET_SUBSCRIPTION = _for_both_families(
    "get",
    "subscription",
    HTTPMethod.GET,
    _SUBSCRIPTION,
    scope=Scope.WEBHOOKS_READ,
    command=webhooks.GetSubscription,
    reply=webhook_views.Subscription,
    message="Webhook subscription found",
    errors=(e.NotFound,),
    summary="Get a subscription",
)
GET_HEALTH = _for_both_families(
    "get",
    "health",
    HTTPMethod.GET,
    f"{_SUBSCRIPTION}/health",
    shown_as="subscription_health",
    scope=Scope.WEBHOOKS_READ,
    command=webhooks.GetHealth,
    reply=webhook_views.SubscriptionHealth,
    message="Health found",
    errors=(e.NotFound,),
    summary="Get how the endpoint of a subscription is doing, and what waits for it",
)
UPDATE_SUBSCRIPTION = _for_both_families(
    "update",
    "subscription",
    HTTPMethod.PATCH,
    _SUBSCRIPTION,
    scope=Scope.WEBHOOKS_WRITE,
    command=webhooks.UpdateSubscription,
    reply=webhook_views.Subscription,
    message="Webhook subscription updated",
    errors=(e.NotFound, e.InvalidState),
    summary="Change a subscription, disable it, or make it active again",
)
DELETE_SUBSCRIPTION: FamilyPair[webhooks.DeleteSubscription, None] = _for_both_families(
    "delete",
    "subscription",
    HTTPMethod.DELETE,
    _SUBSCRIPTION,
    scope=Scope.WEBHOOKS_WRITE,
    command=webhooks.DeleteSubscription,
    reply=None,
    message="Webhook subscription deleted",
    errors=(e.NotFound,),
    summary="Delete a subscription, with the deliveries that it still waits for",
)
GET_SECRET = _for_both_families(
    "get",
    "secret",
    HTTPMethod.GET,
    f"{_SUBSCRIPTION}/secret",
    shown_as="subscription_secret",
    scope=Scope.WEBHOOKS_WRITE,
    command=webhooks.GetSecret,
    reply=webhook_views.SubscriptionSecret,
    message="Secret found",
    errors=(e.NotFound,),
    summary="Get the secret that deliveries are signed with",
)
ROTATE_SECRET = _for_both_families(
    "rotate",
    "secret",
    HTTPMethod.POST,
    f"{_SUBSCRIPTION}/secret/rotate",
    shown_as="subscription_secret",
    scope=Scope.WEBHOOKS_WRITE,
    command=webhooks.RotateSecret,
    reply=webhook_views.SubscriptionSecret,
    message="Secret rotated",
    errors=(e.NotFound,),
    summary="Make a new secret; the one before goes on signing beside it for a while",
)
TEST_SUBSCRIPTION = _for_both_families(
    "test",
    "subscription",
    HTTPMethod.POST,
    f"{_SUBSCRIPTION}/test",
    scope=Scope.WEBHOOKS_WRITE,
    command=webhooks.TestSubscription,
    reply=webhook_views.Delivery,
    message="Test event recorded",
    errors=(e.NotFound, e.InvalidState),
    summary="Record a test event that is delivered to this subscription only",
)
LIST_DELIVERIES = _for_both_families(
    "list",
    "deliveries",
    HTTPMethod.GET,
    _DELIVERIES,
    scope=Scope.WEBHOOKS_READ,
    command=webhooks.ListDeliveries,
    reply=list[webhook_views.Delivery],
    pagination=PageInfo,
    costly=True,
    message="Deliveries found",
    errors=(e.NotFound,),
    summary="List a subscription's deliveries, newest first",
)
GET_DELIVERY = _for_both_families(
    "get",
    "delivery",
    HTTPMethod.GET,
    _DELIVERY,
    scope=Scope.WEBHOOKS_READ,
    command=webhooks.GetDelivery,
    reply=webhook_views.DeliveryDetail,
    message="Delivery found",
    errors=(e.NotFound,),
    summary="Get a delivery with its attempts",
)
RESEND_DELIVERY = _for_both_families(
    "resend",
    "delivery",
    HTTPMethod.POST,
    f"{_DELIVERY}/resend",
    scope=Scope.WEBHOOKS_WRITE,
    command=webhooks.ResendDelivery,
    reply=webhook_views.Delivery,
    message="Delivery scheduled",
    errors=(e.NotFound, e.InvalidState),
    summary="Deliver an event to a subscription once more",
)
RECOVER_SUBSCRIPTION = _for_both_families(
    "recover",
    "subscription",
    HTTPMethod.POST,
    f"{_SUBSCRIPTION}/recover",
    scope=Scope.WEBHOOKS_WRITE,
    command=webhooks.RecoverSubscription,
    reply=webhook_views.Recovery,
    message="Recovery scheduled",
    errors=(e.NotFound, e.InvalidState),
    summary="Deliver every event that failed or was held in a time once more",
)
LIST_EVENTS = _for_both_families(
    "list",
    "events",
    HTTPMethod.GET,
    _EVENTS,
    scope=Scope.EVENTS_READ,
    command=event_views.ListEvents,
    reply=list[event_views.DeliveredEvent],
    message="Events found",
    errors=(e.NotFound,),
    summary="List the events that are kept, oldest first; ask for those after the last one seen to miss none",
)
GET_EVENT = _for_both_families(
    "get",
    "event",
    HTTPMethod.GET,
    f"{_EVENTS}/{{event_id}}",
    scope=Scope.EVENTS_READ,
    command=event_views.GetEvent,
    reply=event_views.DeliveredEvent,
    message="Event found",
    errors=(e.NotFound,),
    summary="Get an event, as it was delivered",
)

FAMILY_PAIRS = declared_in(globals(), FamilyPair)

OPERATIONS = tuple(row for pair in FAMILY_PAIRS for row in pair)
