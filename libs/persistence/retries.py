"""Repeating what failed because the database was not available."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

import structlog

from libs.persistence.availability import is_away

RETRY_SECONDS = 0.5

ResultT = TypeVar("ResultT")


async def until_available(what: str, act: Callable[[], Awaitable[ResultT]]) -> ResultT:
    """The result of `act`, called again for as long as the database is not available. Other errors are raised.

    Args:
        what: for the log.
    """
    while True:
        try:
            return await act()
        except Exception as error:
            if not is_away(error):
                raise
            structlog.get_logger("database").warning(
                "database_away", waiting=what, error=type(error).__name__
            )
        await asyncio.sleep(RETRY_SECONDS)
