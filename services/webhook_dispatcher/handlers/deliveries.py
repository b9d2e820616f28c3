"""Deliveries of a subscription: list and get them, send a test event, resend one."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace
from datetime import timedelta
from typing import Protocol
from uuid import UUID

from uuid_utils import uuid7

from libs.contracts.errors import NotFound
from libs.contracts.events import Event
from libs.contracts.ids import parse_id
from libs.contracts.operation import PageInfo
from libs.contracts.principal import Principal
from libs.contracts.result import Result
from libs.contracts.webhook_views import Delivery
from libs.contracts.webhooks import (
    GetDelivery,
    ListDeliveries,
    ResendDelivery,
    TestSubscription,
)
from libs.handling.commands import Drive
from libs.persistence.async_engine import AsyncConnection
from libs.persistence.engine import Database
from services.webhook_dispatcher.handlers.outcomes import Outcomes
from services.webhook_dispatcher.handlers.subscriptions import owned, owned_and_active
from services.webhook_dispatcher.models import DeliveryRecord
from services.webhook_dispatcher.repository import (
    deliveries,
    endpoints,
    partitions,
    subscriptions,
)
from services.webhook_dispatcher.views import delivery_detail, delivery_view, subscription_event


class Record(Protocol):
    """Records an event in the caller's transaction. Returns the id of its delivery when it is for one subscription."""

    def __call__(
        self, connection: AsyncConnection, event: Event, *, only_for: UUID | None = None
    ) -> Awaitable[UUID | None]: ...


class DeliveryCommands:
    """
    Args:
        retention: how old the event of a delivery that is sent again may be.
    """

    def __init__(
        self,
        outcomes: Outcomes,
        record: Record,
        wake: Callable[[], None],
        retention: timedelta,
    ) -> None:
        self._outcomes = outcomes
        self._retention = retention
        self._record = record
        self._wake = wake

    async def test(self, drive: Drive, command: TestSubscription) -> Result:
        async def test(connection: AsyncConnection) -> Delivery:
            subscription = await owned_and_active(
                connection, drive.principal, command.subscription_id
            )
            sequence = await subscriptions.next_sequence(connection, subscription.id)
            event = subscription_event("test", subscription, sequence)
            role = await endpoints.let_one_through(connection, subscription.id)
            delivery_id = await self._record(connection, event, only_for=subscription.id)
            if delivery_id is None:
                raise RuntimeError("the test event has no delivery")
            await deliveries.put_first(connection, subscription.id, delivery_id)
            made = await find_delivery(connection, subscription.id, delivery_id)
            return delivery_view(replace(made, circuit_breaker=role))

        done = await self._outcomes.change(drive, Delivery, test)
        self._wake()
        return Result(data=done)

    async def resend(self, drive: Drive, command: ResendDelivery) -> Result:
        async def resend(connection: AsyncConnection) -> Delivery:
            subscription = await owned_and_active(
                connection, drive.principal, command.subscription_id
            )
            made = await send_again(
                connection, subscription.id, parse_id(command.delivery_id), self._retention
            )
            return delivery_view(made)

        done = await self._outcomes.change(drive, Delivery, resend)
        self._wake()
        return Result(data=done)


class DeliveryQueries:
    """Each reads one snapshot, since a delivery moves from one table to another when it ends."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def get(self, principal: Principal, command: GetDelivery, _: float) -> Result:
        async with self._database.snapshot() as connection:
            subscription = await owned(connection, principal, command.subscription_id)
            record = await find_delivery(connection, subscription.id, parse_id(command.delivery_id))
            attempts = await deliveries.attempts(connection, record)
        return Result(data=delivery_detail(record, attempts))

    async def list(self, principal: Principal, command: ListDeliveries, _: float) -> Result:
        async with self._database.snapshot() as connection:
            subscription = await owned(connection, principal, command.subscription_id)
            found, total = await deliveries.page(
                connection,
                subscription.id,
                command.status,
                limit=command.limit,
                offset=(command.page - 1) * command.limit,
            )
        return Result(
            data=[delivery_view(record) for record in found],
            pagination=PageInfo(limit=command.limit, total=total, page=command.page),
        )


async def send_again(
    connection: AsyncConnection,
    subscription_id: UUID,
    delivery_id: UUID | None,
    retention: timedelta,
) -> DeliveryRecord:
    """Add a delivery of the same event, to be attempted before all others of the subscription, whose row is locked;
    where the circuit breaker is open, as its probe.

    Raises:
        NotFound: also for an event beyond the retention, which is kept while another delivery is pending: it would be
            kept for as long as it is sent again.
    """
    known = await find_delivery(connection, subscription_id, delivery_id)
    added = UUID(bytes=uuid7().bytes)
    again = [(added, known.event_day, known.event_id)]
    first_kept = await partitions.earlier_today(connection) - retention
    if known.event_day < first_kept or not await deliveries.add_again(
        connection, subscription_id, again
    ):
        raise NotFound("The event is kept no longer.")
    await deliveries.note(connection, subscription_id, known)
    await deliveries.put_first(connection, subscription_id, added)
    role = await endpoints.let_one_through(connection, subscription_id)
    made = await find_delivery(connection, subscription_id, added)
    return replace(made, circuit_breaker=role)


async def find_delivery(
    connection: AsyncConnection, subscription_id: UUID, delivery_id: UUID | None
) -> DeliveryRecord:
    """Raises NotFound."""
    found = (
        await deliveries.find(connection, subscription_id, delivery_id)
        if delivery_id is not None
        else None
    )
    if found is None:
        raise NotFound
    return found
