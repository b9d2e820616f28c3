"""What becomes of the deliveries of a subscription when it is disabled, made active again, or deleted.

They may be many: they are changed in batches, each a transaction of its own, for as long as the subscription has the
status that asks for it. Whoever claims deliveries goes by the subscription's status, so none is sent meanwhile.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from uuid import UUID

from sqlalchemy.ext.asyncio import AsyncConnection

from libs.persistence.engine import Database
from services.webhook_dispatcher.repository import deliveries

BATCH = 5000
PAUSE_SECONDS = 0.05
MOST_PAUSES = 100
"""Rows that are being worked on are passed over and tried again, so often at most."""

Change = Callable[[AsyncConnection, UUID, int], Awaitable[int]]


async def hold(database: Database, subscription_id: UUID) -> None:
    """Of a subscription that was disabled: what is pending is held."""
    await _all(database, subscription_id, "disabled", deliveries.hold)


async def release(database: Database, subscription_id: UUID) -> None:
    """Of a disabled subscription that is active again: what is held is pending, and due."""
    await _all(database, subscription_id, "active", deliveries.release)


async def drop(database: Database, subscription_id: UUID) -> None:
    """Of a subscription that was deleted: nothing is left to deliver."""
    await _all(database, subscription_id, "deleted", deliveries.drop)


async def _all(database: Database, subscription_id: UUID, status: str, change: Change) -> None:
    pauses = 0
    while pauses <= MOST_PAUSES:
        async with database.transaction() as connection:
            if not await deliveries.keeps_status(connection, subscription_id, status):
                return
            if await change(connection, subscription_id, BATCH) == BATCH:
                continue
            if not await deliveries.are_left(connection, subscription_id, status):
                return
        pauses += 1
        await asyncio.sleep(PAUSE_SECONDS)
