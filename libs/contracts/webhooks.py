"""What callers ask of webhooks: subscriptions, their secrets, deliveries."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import Field, TypeAdapter, ValidationError
from typing_extensions import TypeAliasType

from libs.contracts import fields as f
from libs.contracts.event_views import EventFilter
from libs.contracts.model import BrokenRule, Command, Model, sparse
from libs.contracts.webhook_views import DeliveryFilter

WantedStatus = TypeAliasType("WantedStatus", Literal["active", "disabled"])
"""What an owner can set; `unavailable` is ours to set."""

_INSTANT: TypeAdapter[Any] = TypeAdapter(f.UtcDateTime)


class SubscriptionFields(Model):
    event_types: EventFilter
    callback_url: f.WebUrl
    description: f.Description = ""


class ChangeableFields(SubscriptionFields):
    status: WantedStatus


SubscriptionUpdate = sparse("SubscriptionUpdate", ChangeableFields)


class CreateSubscription(SubscriptionFields, Command):
    pass


class ListSubscriptions(Command):
    pass


class GetSubscription(Command):
    subscription_id: str


class GetHealth(Command):
    subscription_id: str


class UpdateSubscription(SubscriptionUpdate, Command):  # type: ignore[valid-type,misc]
    subscription_id: str


class DeleteSubscription(Command):
    subscription_id: str


class GetSecret(Command):
    subscription_id: str


class RotateSecret(Command):
    subscription_id: str


class TestSubscription(Command):
    __test__ = False  # pytest takes it for a test otherwise

    subscription_id: str


class ListDeliveries(Command):
    subscription_id: str
    page: f.Page = 1
    limit: f.Limit = 50
    status: Annotated[DeliveryFilter, Field(strict=False)] | None = None


class GetDelivery(Command):
    subscription_id: str
    delivery_id: str


class ResendDelivery(Command):
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
    """Both inclusive; `until` is now by default."""

    subscription_id: str
    since: f.UtcDateTime
    until: f.UtcDateTime | None = None

    @classmethod
    def broken_rules(cls, values: Mapping[str, Any]) -> list[BrokenRule]:
        return broken_recovery(values)
