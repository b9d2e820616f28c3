"""Going on when the database is back."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

import structlog

from libs.persistence.availability import is_away

RETRY_SECONDS = 0.5

ResultT = TypeVar("ResultT")


async def until_done(what: str, act: Callable[[], Awaitable[ResultT]]) -> ResultT:
    """What `act` returns, tried again for as long as the database is away. Anything else that it raises is a fault."""
    while True:
        try:
            return await act()
        except Exception as error:
            if not is_away(error):
                raise
            structlog.get_logger("webhooks").warning(
                "database_away", waiting=what, error=type(error).__name__
            )
        await asyncio.sleep(RETRY_SECONDS)
