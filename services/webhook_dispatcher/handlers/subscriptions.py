"""Subscriptions: create, read, change and delete them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import replace
from datetime import datetime
from typing import Any
from uuid import UUID

from uuid_utils import uuid7

from libs.contracts.errors import InvalidState, NotFound, OutcomePending
from libs.contracts.ids import id_of
from libs.contracts.model import Model
from libs.contracts.principal import Principal
from libs.contracts.result import Result
from libs.contracts.sensitive import Sealer
from libs.contracts.webhook_views import Subscription, SubscriptionStatus
from libs.contracts.webhooks import (
    CreateSubscription,
    DeleteSubscription,
    GetSubscription,
    ListSubscriptions,
    UpdateSubscription,
)
from libs.handling.bulkhead import Bulkhead, Turn
from libs.handling.commands import Drive
from libs.persistence import inbox_acceptance
from libs.persistence.async_engine import AsyncConnection
from libs.persistence.engine import Database
from services.webhook_dispatcher.handlers.batches import Batches
from services.webhook_dispatcher.handlers.outcomes import Outcomes
from services.webhook_dispatcher.models import SubscriptionRecord
from services.webhook_dispatcher.ports import CallbackUrls
from services.webhook_dispatcher.repository import recording, strays, subscriptions
from services.webhook_dispatcher.signing_secrets import new_secret, seal_secret
from services.webhook_dispatcher.views import subscription_view

MOST_SUBSCRIPTIONS = 50
"""Of one subscriber, a customer or a partner (interface §6)."""
CHECKS_AT_ONCE, CHECKS_WAITING, CHECKS_OF_TENANT_AT_ONCE = 24, 32, 8
"""How many callback URLs are checked, and how many wait for it, half of them of one tenant at most: each holds one of
the drives of the process (`DRIVES_AT_ONCE`), for seconds where the servers of its name are silent. So a tenant holds 24
of its drives (`DRIVES_OF_TENANT`) at most, and all tenants 56. Beyond that a command is 503.
"""
STRAYS_AT_ONCE = 5000
PAUSE_SECONDS = 0.05
MOST_PAUSES = 100
"""Rows that other transactions have locked are passed over and tried again after a pause, this many times at most."""

_FIELDS = {
    "event_types": "event_type",
    "callback_url": "callback_url",
    "description": "description",
}


class _Updated(Model):
    """A subscription that an update has changed.

    Args:
        before: the status before the update.
    """

    subscription: Subscription
    before: str


class _Deleted(Model):
    """A subscription that is deleted. Its callback URL, which may hold a secret, is not kept with the outcome."""

    subscription_id: str


class SubscriptionCommands:
    """Checking the URL asks the network, and is done before the transaction.

    Each change waits for events that are being recorded. Events recorded later go by the changed subscription.
    """

    def __init__(
        self,
        outcomes: Outcomes,
        sealer: Sealer,
        callback_urls: CallbackUrls,
        wake: Callable[[], None],
        batches: Batches,
    ) -> None:
        self._outcomes = outcomes
        self._sealer = sealer
        self._callback_urls = callback_urls
        self._wake = wake
        self._checks = Bulkhead(
            CHECKS_AT_ONCE, CHECKS_WAITING, at_once_of_tenant=CHECKS_OF_TENANT_AT_ONCE
        )
        self._batches = batches

    async def create(self, drive: Drive, command: CreateSubscription) -> Result:
        known = await self._outcomes.recall(drive, Subscription)
        if known is not None:
            return Result(data=known)
        await self._check(drive, command.callback_url)

        async def add(connection: AsyncConnection) -> Subscription:
            await subscriptions.lock_subscriber(connection, drive.principal)
            if await subscriptions.count(connection, drive.principal) >= MOST_SUBSCRIPTIONS:
                raise InvalidState(
                    f"There are {MOST_SUBSCRIPTIONS} subscriptions already, which is as many as one may have."
                )
            subscription_id = UUID(bytes=uuid7().bytes)
            await recording.lock_positions(connection)
            record = await subscriptions.add(
                connection,
                drive.principal,
                subscription_id,
                event_type=command.event_types,
                callback_url=command.callback_url,
                description=command.description,
                secret=seal_secret(self._sealer, subscription_id, new_secret()),
            )
            return subscription_view(record)

        return Result(data=await self._outcomes.change(drive, Subscription, add))

    async def update(self, drive: Drive, command: UpdateSubscription) -> Result:
        known = await self._outcomes.recall(drive, _Updated)
        sent = command.model_dump(exclude_unset=True)
        if known is None and "callback_url" in sent:
            # The owner is checked first, so that a refused URL does not show that another's subscription exists.
            async with drive.database.transaction() as connection:
                await owned(connection, drive.principal, command.subscription_id)
            await self._check(drive, sent["callback_url"])

        async def change(connection: AsyncConnection) -> _Updated:
            record = await owned(
                connection, drive.principal, command.subscription_id, for_change=True
            )
            changed = _changed(record, sent)
            # Its deliveries may be millions: a later change does not wait until they have followed. Before `save`, by
            # which events that are being recorded wait until the commit.
            await inbox_acceptance.leave_order(connection, drive.command_id)
            updated = await save(connection, record, changed)
            return _Updated(subscription=subscription_view(updated), before=record.status.value)

        done = known or await self._outcomes.change(drive, _Updated, change)
        drive.made_due()
        subscription_id = UUID(done.subscription.subscription_id)
        try:
            match done.before, done.subscription.status:
                case "active", SubscriptionStatus.DISABLED:
                    await self._change_strays(drive, subscription_id, "disabled")
                case "disabled", SubscriptionStatus.ACTIVE:
                    active_since = done.subscription.updated_at
                    await self._change_strays(drive, subscription_id, "active", active_since)
                case _:
                    pass
        finally:
            self._wake()
        return Result(data=done.subscription)

    async def delete(self, drive: Drive, command: DeleteSubscription) -> Result:
        async def delete(connection: AsyncConnection) -> _Deleted:
            record = await owned(
                connection, drive.principal, command.subscription_id, for_change=True
            )
            await inbox_acceptance.leave_order(connection, drive.command_id)
            await recording.lock_positions(connection)
            await subscriptions.delete(connection, record.id)
            return _Deleted(subscription_id=str(record.id))

        deleted = await self._outcomes.change(drive, _Deleted, delete)
        drive.made_due()
        await self._change_strays(drive, UUID(deleted.subscription_id), "deleted")
        self._wake()
        return Result()

    async def _check(self, drive: Drive, callback_url: str) -> None:
        """Raises Invalid; Unavailable: it could not be checked by now, or many others are being checked."""
        tenant = drive.principal.tenant
        async with self._checks.slot(tenant):
            await self._callback_urls.check(callback_url, tenant)

    async def _change_strays(
        self,
        drive: Drive,
        subscription_id: UUID,
        status: strays.Status,
        active_since: datetime | None = None,
    ) -> None:
        """As `change_strays`. Raises OutcomePending also where many others of the tenant are being changed."""
        async with self._batches.place(drive.principal.tenant) as turn:
            await change_strays(drive.database, subscription_id, status, turn, active_since)


class SubscriptionQueries:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def get(self, principal: Principal, command: GetSubscription, _: float) -> Result:
        async with self._database.transaction() as connection:
            record = await owned(connection, principal, command.subscription_id)
        return Result(data=subscription_view(record))

    async def list(self, principal: Principal, _: ListSubscriptions, __: float) -> Result:
        async with self._database.transaction() as connection:
            found = await subscriptions.newest(connection, principal)
        return Result(data=[subscription_view(record) for record in found])


async def owned(
    connection: AsyncConnection,
    principal: Principal,
    subscription_id: str,
    *,
    for_change: bool = False,
) -> SubscriptionRecord:
    """The principal's subscription. Raises NotFound."""
    wanted = id_of(subscription_id)
    record = await subscriptions.find(connection, principal, wanted, for_change=for_change)
    if record is None:
        raise NotFound
    return record


async def owned_and_active(
    connection: AsyncConnection, principal: Principal, subscription_id: str
) -> SubscriptionRecord:
    """The principal's subscription, its row locked. Raises NotFound, InvalidState."""
    record = await owned(connection, principal, subscription_id, for_change=True)
    if record.status is not SubscriptionStatus.ACTIVE:
        raise InvalidState(f"The subscription is {record.status}: make it active first.")
    return record


async def found_of_any(
    connection: AsyncConnection, subscription_id: str, *, for_change: bool = False
) -> SubscriptionRecord:
    """The subscription of any tenant, for operators. Raises NotFound."""
    wanted = id_of(subscription_id)
    record = await subscriptions.find_of_any(connection, wanted, for_change=for_change)
    if record is None:
        raise NotFound
    return record


async def found_and_active(connection: AsyncConnection, subscription_id: str) -> SubscriptionRecord:
    """The subscription of any tenant, for operators, its row locked. Raises NotFound, InvalidState."""
    record = await found_of_any(connection, subscription_id, for_change=True)
    if record.status is not SubscriptionStatus.ACTIVE:
        raise InvalidState(f"The subscription is {record.status}: its owner makes it active first.")
    return record


def _changed(record: SubscriptionRecord, sent: dict[str, Any]) -> SubscriptionRecord:
    """The subscription as it is to be. Raises InvalidState."""
    values = {field: sent[name] for name, field in _FIELDS.items() if name in sent}
    if values.get("description", "") is None:
        values["description"] = ""
    status = SubscriptionStatus(sent.get("status", record.status))
    if record.status is SubscriptionStatus.UNAVAILABLE and status is SubscriptionStatus.DISABLED:
        raise InvalidState("The subscription is unavailable: it can be made active, or deleted.")
    return replace(record, **values, status=status)


async def save(
    connection: AsyncConnection, record: SubscriptionRecord, changed: SubscriptionRecord
) -> SubscriptionRecord:
    """Write what has changed of a subscription whose row is locked. Events recorded later go by it."""
    if changed == record:
        return record
    comes_back = changed.status is SubscriptionStatus.ACTIVE and record.status != changed.status
    if comes_back or changed.callback_url != record.callback_url:
        await subscriptions.reset_endpoint(connection, record.id)
    await recording.lock_positions(connection)
    return await subscriptions.save(connection, changed)


async def change_strays(
    database: Database,
    subscription_id: UUID,
    status: strays.Status,
    turn: Turn = nullcontext,
    active_since: datetime | None = None,
) -> None:
    """Have the deliveries follow the new status, for as long as the subscription has it.

    None of them is sent meanwhile: claims go by the subscription's status.

    Args:
        turn: entered for each batch, before its connection is taken.
        active_since: when it became active. What is held since it was unavailable after that stays held.

    Raises OutcomePending: held ones of an active subscription stay locked. Of other statuses upkeep changes the rest.
    """
    pauses = 0
    while pauses <= MOST_PAUSES:
        async with turn(), database.transaction() as connection:
            changed = await strays.change(
                connection, subscription_id, status, STRAYS_AT_ONCE, active_since
            )
            if changed is None:
                return
            if changed == STRAYS_AT_ONCE:
                continue
            if not await strays.any_left(connection, subscription_id, status):
                return
        pauses += 1
        await asyncio.sleep(PAUSE_SECONDS)
    if status == "active":
        raise OutcomePending
