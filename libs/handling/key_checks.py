"""At the start of a service: no key of its rings was replaced under its id."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from typing import NoReturn

import structlog

from libs.persistence import key_checks
from libs.persistence.availability import is_away
from libs.persistence.engine import Database
from libs.persistence.retries import until_available
from libs.runtime.process import Misconfigured, Process
from libs.runtime.service_settings import MessagingSettings

Check = Callable[[], Awaitable[None]]
"""Raises Misconfigured, or what the database raises while it is away."""


async def require_known_keys(database: Database, settings: MessagingSettings) -> None:
    """Note the keys whose ids the database does not know yet. Those of the first start with this record are taken as
    the right ones.

    Raises:
        Misconfigured: the database knows other keys under their ids. None is noted then.
    """
    rings: Mapping[str, Mapping[str, bytes]] = settings.check_values()
    async with database.transaction() as connection:
        sentences = [
            _sentence(settings.variable(ring), key_id)
            for ring, check_values in sorted(rings.items())
            for key_id in await key_checks.note(connection, ring, check_values)
        ]
        if sentences:
            raise Misconfigured(*sentences)


@asynccontextmanager
async def keys_checked(process: Process, check: Check) -> AsyncIterator[None]:
    """Check the keys before the body. A process that starts while the database is away waits for it in the body, and
    ends if the check fails once the database is back.

    Raises:
        Misconfigured
    """
    if await _is_checked(check):
        yield
        return
    async with process.background("key-checks", _check_later(check)):
        yield


async def _is_checked(check: Check) -> bool:
    """Whether the database was there for it. Raises Misconfigured."""
    try:
        await check()
    except Exception as error:
        if not is_away(error):
            raise
        structlog.get_logger("keys").warning("keys_not_checked", error=type(error).__name__)
        return False
    return True


async def _check_later(check: Check) -> NoReturn:
    await until_available("key-checks", check)
    while True:  # a background task that ends would end the process
        await asyncio.Event().wait()


def _sentence(variable: str, key_id: str) -> str:
    key = f"the key {key_id}" if key_id else "the key without an id"
    return (
        f"put {key} of {variable} back as it was, or give this one an id that was never used: the database knows"
        " another key under that id."
    )
