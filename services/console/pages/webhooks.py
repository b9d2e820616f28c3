"""Webhook subscriptions, their deliveries, and events."""

from typing import Any

from libs.contracts.operating import webhooks as o
from services.console.declarations import Action, DetailPage, ListPage, Panel, Subject, filled
from services.console.values import NO_LINKS, Links

ONE_DELIVERY = "/subscriptions/{subscription_id}/deliveries/{delivery_id}"

_NOT_FOUND = frozenset({"transaction", "ach", "statement"})
"""Kinds of events about what the financial provider has, which no search finds by its id."""


def _links(shown: Any) -> Links:
    """Of an event, and of its deliveries."""
    if isinstance(shown, o.OperatorEvent) and shown.type.partition(".")[0] in _NOT_FOUND:
        return {"resource_id": None}
    if isinstance(shown, o.OperatorDelivery):
        return {"delivery_id": filled(ONE_DELIVERY, shown)}
    return NO_LINKS


def _is_active(subscription: Any) -> bool:
    return str(subscription.status) == "active"


def _can_be_resent(delivery: Any) -> bool:
    """Also where the status is not told, of a deleted subscription or by a service of the release before: the service
    refuses where it must.
    """
    return str(delivery.subscription_status or "active") == "active"


RECOVER = Action(
    title="Recover",
    path="/subscriptions/{subscription_id}/recover",
    operation=o.RECOVER,
    effect="Delivers every event that failed or was held in this time once more. Times are such as 2026-01-31T08:00Z.",
    done="The recovery is scheduled.",
    when=_is_active,
    unfinished="There was more than one request has time for. What was found is on its way: go on with the rest.",
    progress=("scheduled",),
    hidden=("after",),
)
DISABLE = Action(
    title="Disable",
    path="/subscriptions/{subscription_id}/disable",
    operation=o.DISABLE,
    effect="Stops deliveries until the subscriber makes the subscription active again. Events are held meanwhile.",
    done="The subscription is disabled.",
    when=_is_active,
    danger=True,
)
RESEND = Action(
    title="Resend",
    path=f"{ONE_DELIVERY}/resend",
    operation=o.RESEND,
    effect="Delivers the event to this subscription once more, at once. It is refused while the subscription is not"
    " active, which its subscriber alone can change.",
    done="The delivery is scheduled.",
    when=_can_be_resent,
)

DELIVERIES = ListPage(
    path="/subscriptions/{subscription_id}/deliveries",
    title="Deliveries",
    about="What was delivered to this subscription, and what waits.",
    operation=o.LIST_DELIVERIES,
    columns=(
        "delivery_id",
        "status",
        "event_type",
        "event_id",
        "attempts_made",
        "next_attempt_at",
        "created_at",
    ),
    one=ONE_DELIVERY,
    each=(RESEND,),
)
LIST = ListPage(
    path="/subscriptions",
    title="Webhooks",
    about="Webhook subscriptions of all tenants, and how their endpoints are doing.",
    operation=o.LIST_SUBSCRIPTIONS,
    columns=(
        "subscription_id",
        "status",
        "health_state",
        "tenant",
        "customer_id",
        "event_type",
        "callback_url",
        "created_at",
    ),
    one="/subscriptions/{subscription_id}",
)
DETAIL = DetailPage(
    path="/subscriptions/{subscription_id}",
    title="Subscription",
    operation=o.GET_SUBSCRIPTION,
    name="subscription_id",
    parent=LIST,
    parts=("health", "breaker"),
    actions=(RECOVER, DISABLE),
    panels=(Panel(DELIVERIES, "Deliveries", {"subscription_id": "subscription_id"}),),
)
DELIVERY = DetailPage(
    path=ONE_DELIVERY,
    title="Delivery",
    operation=o.GET_DELIVERY,
    name="delivery_id",
    parent=LIST,
    parts=("attempts",),
    actions=(RESEND,),
)
EVENTS = ListPage(
    path="/events",
    title="Events",
    about="What happened, as subscribers are told it.",
    operation=o.LIST_EVENTS,
    columns=(
        "event_id",
        "type",
        "tenant",
        "customer_id",
        "resource_id",
        "sequence",
        "recorded_at",
    ),
    one="/events/{event_id}",
    sorted_by="recorded_at",
    links=_links,
)
EVENT = DetailPage(
    path="/events/{event_id}",
    title="Event",
    operation=o.GET_EVENT,
    name="event_id",
    parent=EVENTS,
    parts=("event", "deliveries"),
    links=_links,
    each={"deliveries": (RESEND,)},
)

SUBJECT = Subject(LIST, (DETAIL, DELIVERY))
DELIVERIES_SUBJECT = Subject(DELIVERIES)
EVENTS_SUBJECT = Subject(EVENTS, (EVENT,))
