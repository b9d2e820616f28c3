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
from libs.contracts.webhook_operations import FamilyPair

C = TypeVar("C", bound=Command)
R = TypeVar("R")


class PairCall(Generic[C, R]):
    """An operation that both families have, as a method of `Webhooks`."""

    def __init__(self, pair: FamilyPair[C, R]) -> None:
        self.pair = pair

    @overload
    def __get__(self, instance: None, owner: type[Webhooks]) -> PairCall[C, R]: ...
    @overload
    def __get__(self, instance: Webhooks, owner: type[Webhooks]) -> BoundCall[C, R]: ...
    def __get__(
        self, instance: Webhooks | None, owner: type[Webhooks]
    ) -> PairCall[C, R] | BoundCall[C, R]:
        if instance is None:
            return self
        return BoundCall(instance.client, self.pair.of(instance.family))


class Webhooks:
    """What a client can do with webhooks and events; `family` is that of its key."""

    create_subscription = PairCall(table.CREATE_SUBSCRIPTION)
    list_subscriptions = PairCall(table.LIST_SUBSCRIPTIONS)
    get_subscription = PairCall(table.GET_SUBSCRIPTION)
    get_health = PairCall(table.GET_HEALTH)
    update_subscription = PairCall(table.UPDATE_SUBSCRIPTION)
    delete_subscription = PairCall(table.DELETE_SUBSCRIPTION)
    get_secret = PairCall(table.GET_SECRET)
    rotate_secret = PairCall(table.ROTATE_SECRET)
    test_subscription = PairCall(table.TEST_SUBSCRIPTION)
    list_deliveries = PairCall(table.LIST_DELIVERIES)
    get_delivery = PairCall(table.GET_DELIVERY)
    resend_delivery = PairCall(table.RESEND_DELIVERY)
    recover_subscription = PairCall(table.RECOVER_SUBSCRIPTION)
    list_events = PairCall(table.LIST_EVENTS)
    get_event = PairCall(table.GET_EVENT)

    def __init__(self, client: Client, family: Family) -> None:
        self.client = client
        self.family = family
