"""Webhooks and events in the typed client: the same methods for a customer's key and a partner's.

hooks = Webhooks(bankside, Family.CUSTOMER)
made = await hooks.create_subscription(CreateSubscription(event_types="wire", callback_url="https://…"))
"""

from __future__ import annotations

from typing import Generic, TypeVar, overload

from libs.client.client import BoundCall, Client
from libs.contracts import event_views as events
from libs.contracts import webhook_operations as table
from libs.contracts import webhook_views as views
from libs.contracts import webhooks
from libs.contracts.model import Command
from libs.contracts.principal import Family
from libs.contracts.webhook_operations import Twin

C = TypeVar("C", bound=Command)
R = TypeVar("R")


class TwinCall(Generic[C, R]):
    """An operation that both families have, as a method of `Webhooks`."""

    def __init__(self, twin: Twin) -> None:
        self.twin = twin

    @overload
    def __get__(self, instance: None, owner: type[Webhooks]) -> TwinCall[C, R]: ...
    @overload
    def __get__(self, instance: Webhooks, owner: type[Webhooks]) -> BoundCall[C, R]: ...
    def __get__(
        self, instance: Webhooks | None, owner: type[Webhooks]
    ) -> TwinCall[C, R] | BoundCall[C, R]:
        if instance is None:
            return self
        return BoundCall(instance.client, self.twin.of(instance.family))


class Webhooks:
    """What a client can do with webhooks and events; `family` is that of its key."""

    create_subscription = TwinCall[webhooks.CreateSubscription, views.Subscription](
        table.CREATE_SUBSCRIPTION
    )
    list_subscriptions = TwinCall[webhooks.ListSubscriptions, list[views.Subscription]](
        table.LIST_SUBSCRIPTIONS
    )
    get_subscription = TwinCall[webhooks.GetSubscription, views.Subscription](
        table.GET_SUBSCRIPTION
    )
    update_subscription = TwinCall[webhooks.UpdateSubscription, views.Subscription](
        table.UPDATE_SUBSCRIPTION
    )
    delete_subscription = TwinCall[webhooks.DeleteSubscription, None](table.DELETE_SUBSCRIPTION)
    get_secret = TwinCall[webhooks.GetSecret, views.SubscriptionSecret](table.GET_SECRET)
    rotate_secret = TwinCall[webhooks.RotateSecret, views.SubscriptionSecret](table.ROTATE_SECRET)
    test_subscription = TwinCall[webhooks.TestSubscription, views.Delivery](table.TEST_SUBSCRIPTION)
    list_deliveries = TwinCall[webhooks.ListDeliveries, list[views.Delivery]](table.LIST_DELIVERIES)
    get_delivery = TwinCall[webhooks.GetDelivery, views.DeliveryDetail](table.GET_DELIVERY)
    resend_delivery = TwinCall[webhooks.ResendDelivery, views.Delivery](table.RESEND_DELIVERY)
    recover_subscription = TwinCall[webhooks.RecoverSubscription, views.Recovery](
        table.RECOVER_SUBSCRIPTION
    )
    list_events = TwinCall[events.ListEvents, list[events.DeliveredEvent]](table.LIST_EVENTS)
    get_event = TwinCall[events.GetEvent, events.DeliveredEvent](table.GET_EVENT)

    def __init__(self, client: Client, family: Family) -> None:
        self.client = client
        self.family = family
