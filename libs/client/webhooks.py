"""Webhooks and events in the typed client: the same methods for a customer's key and a partner's.

hooks = Webhooks(bankside, Family.CUSTOMER)
made = await hooks.create_subscription(CreateSubscription(event_types="wire", callback_url="https://…"))
"""

from __future__ import annotations

from typing import Generic, TypeVar, overload

from libs.client.client import BoundCall, Client
from libs.contracts import webhook_operations as table
from libs.contracts.model import Command
from libs.contracts.principal import Family
from libs.contracts.webhook_operations import Twin

C = TypeVar("C", bound=Command)
R = TypeVar("R")


class TwinCall(Generic[C, R]):
    """An operation that both families have, as a method of `Webhooks`."""

    def __init__(self, twin: Twin[C, R]) -> None:
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

    create_subscription = TwinCall(table.CREATE_SUBSCRIPTION)
    list_subscriptions = TwinCall(table.LIST_SUBSCRIPTIONS)
    get_subscription = TwinCall(table.GET_SUBSCRIPTION)
    update_subscription = TwinCall(table.UPDATE_SUBSCRIPTION)
    delete_subscription = TwinCall(table.DELETE_SUBSCRIPTION)
    get_secret = TwinCall(table.GET_SECRET)
    rotate_secret = TwinCall(table.ROTATE_SECRET)
    test_subscription = TwinCall(table.TEST_SUBSCRIPTION)
    list_deliveries = TwinCall(table.LIST_DELIVERIES)
    get_delivery = TwinCall(table.GET_DELIVERY)
    resend_delivery = TwinCall(table.RESEND_DELIVERY)
    recover_subscription = TwinCall(table.RECOVER_SUBSCRIPTION)
    list_events = TwinCall(table.LIST_EVENTS)
    get_event = TwinCall(table.GET_EVENT)

    def __init__(self, client: Client, family: Family) -> None:
        self.client = client
        self.family = family
