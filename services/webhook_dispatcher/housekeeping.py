"""Deleting what is kept no longer and has no partitions of its own."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import NoReturn

import structlog

from libs.persistence.availability import is_away
from libs.persistence.engine import Database
from services.webhook_dispatcher.repository import recovery

PAUSE_SECONDS = 60.0
BATCH = 5000


async def keep_house(database: Database, retention: timedelta) -> NoReturn:
    """Forget redeliveries of events that are kept no longer, batch by batch, for ever."""
    log = structlog.get_logger("housekeeping")
    while True:
        try:
            async with database.transaction() as connection:
                forgotten = await recovery.forget_redeliveries(connection, retention, BATCH)
        except Exception as error:
            if not is_away(error):
                raise
            log.warning("database_away")
            forgotten = 0
        if forgotten < BATCH:
            await asyncio.sleep(PAUSE_SECONDS)
