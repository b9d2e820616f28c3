"""What callers ask of webhooks: subscriptions, their secrets, deliveries."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import Field, TypeAdapter, ValidationError

from libs.contracts import fields as f
from libs.contracts.event_views import EventFilter
from libs.contracts.model import BrokenRule, Command, Model, sparse
from libs.contracts.named import Named
from libs.contracts.webhook_views import DeliveryFilter

WantedStatus = Annotated[
    Literal["active", "disabled"],
    Named("WantedStatus", "Whether events are delivered or held."),
]
"""What an owner can set; `unavailable` is ours to set."""

_INSTANT: TypeAdapter[Any] = TypeAdapter(f.UtcDateTime)


class SubscriptionFields(Model):
    event_types: EventFilter
    """Which events, as one string, not an array: a type (`wire.completed`), a kind (`wire`: every `wire.*`), or `*` for
    all. Answers call it `event_type`. For several kinds make several subscriptions.
    """
    callback_url: f.CallbackUrl
    """Where events are posted: an https:// URL on port 443 or 8443 with a host name that resolves to public addresses,
    at most 2,048 characters, without user and fragment. A part of the host that begins with `xn--` is valid Punycode.
    """
    description: f.Description = ""
    """A note of your own, at most 255 characters."""


class ChangeableFields(SubscriptionFields):
    status: WantedStatus
    """`active` delivers, or resumes deliveries; `disabled` holds deliveries until the subscription is active again."""


SubscriptionUpdate = sparse("SubscriptionUpdate", ChangeableFields)


class CreateSubscription(SubscriptionFields, Command):
    """Subscribe a callback URL to events. It gets the events recorded from now on, each signed with the subscription's
    own secret: ask for that next. A customer gets its own events, a partner those of all its customers; events about a
    subscription, `webhook_subscription.*`, go to its owner alone. Each can have 50 subscriptions.
    """


class ListSubscriptions(Command):
    """List the subscriptions of this customer, or of this partner itself, newest first."""


class GetSubscription(Command):
    """Get a subscription."""

    subscription_id: str


class GetHealth(Command):
    """Get how the endpoint of a subscription is doing: when it last answered, what failed, and what waits for it."""

    subscription_id: str


class UpdateSubscription(SubscriptionUpdate, Command):  # type: ignore[valid-type,misc]
    """Change a subscription, disable it, or make it active again; send only what changes. One that we gave up
    (`unavailable`) is made active again by `status`; then `recover` what was held.
    """

    subscription_id: str


class DeleteSubscription(Command):
    """Delete a subscription, with the deliveries that it still waits for."""

    subscription_id: str


class GetSecret(Command):
    """Get the secret that deliveries to a subscription are signed with. The HMAC's key is the part after `whsec_`,
    decoded from base64.
    """

    subscription_id: str


class RotateSecret(Command):
    """Make a new secret. Deliveries are signed with both until the one before expires, so that a receiver can change
    over.
    """

    subscription_id: str


class TestSubscription(Command):
    """Record a `webhook_subscription.test` event, which is delivered to this subscription alone, at once, even while
    its circuit breaker is open.
    """

    __test__ = False  # pytest takes it for a test otherwise

    subscription_id: str


class ListDeliveries(Command):
    """List the deliveries to a subscription, newest first."""

    subscription_id: str
    page: f.Page = 1
    limit: f.Limit = 50
    status: Annotated[DeliveryFilter, Field(strict=False)] | None = None
    """Only deliveries of this status; `failing` are those that are pending after a failed attempt."""


class GetDelivery(Command):
    """Get a delivery with its attempts: when, how long, and what the endpoint answered."""

    subscription_id: str
    delivery_id: str


class ResendDelivery(Command):
    """Deliver the event of a delivery once more, as a delivery of its own, at once, even while the circuit breaker is
    open. Of an event that is older than 30 days it is 404.
    """

    subscription_id: str
    delivery_id: str


def broken_recovery(values: Mapping[str, Any]) -> list[BrokenRule]:
    """Broken when `until` is before `since`."""
    try:
        since, until = (_INSTANT.validate_python(values.get(name)) for name in ("since", "until"))
    except ValidationError:
        return []
    return [(("until",), "`until` is before `since`")] if until < since else []


class RecoverSubscription(Command):
    """Deliver once more every event that failed or was held in a time, each once. `since` is within the retention of 30
    days.
    """

    subscription_id: str
    since: f.UtcDateTime
    """From when on, inclusive; RFC 3339, in UTC if it has no offset. Not in the future without `until`."""
    until: f.UtcDateTime | None = None
    """Until when, inclusive; now when it is not given."""

    @classmethod
    def broken_rules(cls, values: Mapping[str, Any]) -> list[BrokenRule]:
        return broken_recovery(values)
