"""What operators read of webhooks and events, and do about them. Not scoped by a tenant: operators act for all."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from libs.contracts.errors import InvalidState, NotFound
from libs.contracts.event_views import EVERYTHING, TYPES_BY_FILTER
from libs.contracts.ids import parse_id
from libs.contracts.operating import search
from libs.contracts.operating import webhooks as contract
from libs.contracts.operating.pages import Listed, Place, cut
from libs.contracts.principal import Principal
from libs.contracts.result import Result
from libs.contracts.webhook_views import SubscriptionStatus
from libs.handling.operating.auditing import record
from libs.handling.queries import QueryHandler
from libs.persistence import request_records
from libs.persistence.engine import Database
from services.webhook_dispatcher import operating_views as views
from services.webhook_dispatcher.handlers.deliveries import find_delivery, send_again
from services.webhook_dispatcher.handlers.health import health_view
from services.webhook_dispatcher.handlers.operating_recovery import OperatorRecoveries
from services.webhook_dispatcher.handlers.subscriptions import (
    change_strays,
    found_and_active,
    found_of_any,
    save,
)
from services.webhook_dispatcher.repository import (
    deliveries,
    health,
    operating,
    operating_events,
    request_events,
)
from services.webhook_dispatcher.repository import subscriptions as stored

SERVICE = "webhook_dispatcher"
FIND_ID = search.FIND_ID_OF[SERVICE]


class OperatingWebhooks:
    """The database bounds each statement.

    Args:
        retention: the longest time that `since` of a recovery, and what is sent again, may lie in the past.
        wake: called when something has become due.
    """

    def __init__(self, database: Database, retention: timedelta, wake: Callable[[], None]) -> None:
        self._database = database
        self._retention = retention
        self._recoveries = OperatorRecoveries(database, retention, wake)
        self._wake = wake

    def by_operation(self) -> Mapping[str, QueryHandler]:
        return {
            contract.LIST_SUBSCRIPTIONS.name: self.list_subscriptions,
            contract.GET_SUBSCRIPTION.name: self.get_subscription,
            contract.LIST_DELIVERIES.name: self.list_deliveries,
            contract.GET_DELIVERY.name: self.get_delivery,
            contract.RESEND.name: self.resend,
            contract.RECOVER.name: self._recoveries.recover,
            contract.DISABLE.name: self.disable,
            contract.LIST_EVENTS.name: self.list_events,
            contract.GET_EVENT.name: self.get_event,
            FIND_ID.name: self.find_id,
        }

    async def list_subscriptions(
        self, _: Principal, command: contract.ListOperatorSubscriptions, __: float
    ) -> Result:
        async with self._database.snapshot() as connection:
            listed = await operating.subscriptions(
                connection,
                state=command.state,
                tenant=command.tenant,
                order=command.order,
                place=command.place,
                limit=command.limit + 1,
            )
            found = await health.read(connection, listed.ids)
        stopped = listed.looked_until
        page, following = cut(
            found,
            command.limit,
            views.place_of_subscription,
            looked_until=None if stopped is None else views.place_of_id(stopped),
        )
        items = [views.subscription_view(one) for one in page]
        return Result(data=Listed[contract.OperatorSubscription](items=items, next=following))

    async def get_subscription(
        self, _: Principal, command: contract.GetOperatorSubscription, __: float
    ) -> Result:
        async with self._database.snapshot() as connection:
            subscription = await found_of_any(connection, command.subscription_id)
            [endpoint] = await health.read(connection, [subscription.id])
            seen = await health_view(connection, endpoint)
        return Result(data=views.subscription_detail(endpoint, seen, datetime.now(UTC)))

    async def list_deliveries(
        self, _: Principal, command: contract.ListOperatorDeliveries, __: float
    ) -> Result:
        async with self._database.snapshot() as connection:
            subscription = await found_of_any(connection, command.subscription_id)
            found = await operating.deliveries(
                connection,
                subscription.id,
                command.status,
                order=command.order,
                place=command.place,
                limit=command.limit + 1,
            )
        page, following = cut(found, command.limit, lambda one: Place(one.created_at, str(one.id)))
        items = [views.delivery_view(one, subscription.status) for one in page]
        return Result(data=Listed[contract.OperatorDelivery](items=items, next=following))

    async def get_delivery(
        self, _: Principal, command: contract.GetOperatorDelivery, __: float
    ) -> Result:
        async with self._database.snapshot() as connection:
            subscription = await found_of_any(connection, command.subscription_id)
            delivery = await find_delivery(
                connection, subscription.id, parse_id(command.delivery_id)
            )
            attempts = await deliveries.attempts(connection, delivery)
            body = await operating_events.body_of(connection, delivery)
        return Result(data=views.delivery_detail(delivery, subscription, attempts, body))

    async def resend(
        self, principal: Principal, command: contract.OperatorResend, _: float
    ) -> Result:
        async with self._database.transaction() as connection:
            subscription = await found_and_active(connection, command.subscription_id)
            made = await send_again(
                connection, subscription.id, parse_id(command.delivery_id), self._retention
            )
            await record(
                connection,
                principal,
                "webhooks.resend",
                subscription_id=str(subscription.id),
                delivery_id=command.delivery_id,
                new_delivery_id=str(made.id),
                reason=command.reason,
            )
        self._wake()
        return Result(data=views.delivery_view(made, subscription.status))

    async def disable(
        self, principal: Principal, command: contract.DisableSubscription, _: float
    ) -> Result:
        """What is pending is held afterwards; if that is interrupted, upkeep goes on with it."""
        async with self._database.transaction() as connection:
            subscription = await found_of_any(connection, command.subscription_id, for_change=True)
            if subscription.status is SubscriptionStatus.UNAVAILABLE:
                raise InvalidState("The subscription is unavailable: nothing is delivered to it.")
            if subscription.status is not SubscriptionStatus.DISABLED:
                disabled = replace(subscription, status=SubscriptionStatus.DISABLED)
                await save(connection, subscription, disabled)
            await record(
                connection,
                principal,
                "webhooks.disable",
                subscription_id=str(subscription.id),
                tenant_of_subscription=subscription.tenant,
                reason=command.reason,
            )
        await change_strays(self._database, subscription.id, "disabled")
        async with self._database.transaction() as connection:
            endpoints = await health.read(connection, [subscription.id])
        if not endpoints:
            raise NotFound
        return Result(data=views.subscription_view(endpoints[0]))

    async def list_events(
        self, _: Principal, command: contract.ListOperatorEvents, __: float
    ) -> Result:
        everything = command.event_type in (None, EVERYTHING)
        types = None if everything else TYPES_BY_FILTER[command.event_type or EVERYTHING]
        async with self._database.transaction() as connection:
            found = await operating_events.events(
                connection,
                tenant=command.tenant,
                types=types,
                resource_id=command.resource_id,
                order=command.order,
                place=command.place,
                limit=command.limit + 1,
            )
        page, following = cut(
            found, command.limit, lambda one: Place(one.recorded_at, str(one.position))
        )
        items = [views.event_view(one) for one in page]
        return Result(data=Listed[contract.OperatorEvent](items=items, next=following))

    async def get_event(
        self, _: Principal, command: contract.GetOperatorEvent, __: float
    ) -> Result:
        async with self._database.snapshot() as connection:
            found = await operating_events.find_event(connection, command.event_id)
            if found is None:
                raise NotFound
            sent = await operating.deliveries_of_event(
                connection, found.recorded_at.date(), found.id
            )
            subscribed = dict.fromkeys(one.subscription_id for one in sent)
            endpoints = await health.read(connection, [*subscribed])
        statuses = {one.subscription.id: one.subscription.status for one in endpoints}
        return Result(data=views.event_detail(found, sent, statuses))

    async def find_id(self, __: Principal, command: search.FindId, ___: float) -> Result:
        found: list[search.FoundId] = []
        async with self._database.snapshot() as connection:
            event = await operating_events.find_event(connection, command.q)
            if event is not None:
                found.append(views.found_event(event))
            wanted = parse_id(command.q)
            if wanted is not None:
                subscription = await stored.find_of_any(connection, wanted)
                if subscription is not None:
                    found.append(views.found_subscription(subscription))
                delivery = await operating.find_delivery(connection, wanted)
                owner = delivery and await stored.find_of_any(connection, delivery.subscription_id)
                if delivery and owner:
                    found.append(views.found_delivery(delivery, owner))
            commands, _ = await request_records.commands_of(connection, command.q)
            found += [
                views.found_command(one.command_id, one.operation, command.q) for one in commands
            ]
            events, _ = await request_events.events_of(connection, command.q, [])
            found += [views.found_event(one) for one in events]
            if wanted is not None and not found:
                # An internal command, whose request has the same id, is found already.
                named = await request_records.find_command(connection, wanted)
                if named is not None:
                    found.append(views.found_command(wanted, *named))
        return Result(data=search.FoundIds(found=found))
