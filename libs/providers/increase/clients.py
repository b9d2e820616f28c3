"""The clients of one service at Increase."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack

import aiohttp

from libs.providers.companies import Role
from libs.providers.increase.client import IncreaseClient
from libs.providers.increase.settings import IncreaseSettings
from libs.providers.sessions import open_session


class Clients:
    """One for each role, on one session: circuit breaker and metrics are of the role.

    Together they retrieve as many objects at once as the session has connections: more requests would wait for one,
    each before the reads that come later.
    """

    def __init__(
        self,
        settings: IncreaseSettings,
        session: aiohttp.ClientSession,
        timeout_seconds: float,
        connections: int,
    ) -> None:
        self._settings = settings
        self._session = session
        self._timeout_seconds = timeout_seconds
        self._retrievals = asyncio.Semaphore(connections)

    def at(self, role: Role) -> IncreaseClient:
        return IncreaseClient(
            role.value,
            self._settings.increase_url,
            self._settings.increase_key.get_secret_value(),
            self._session,
            timeout_seconds=self._timeout_seconds,
            retrievals=self._retrievals,
        )


async def open_clients(
    settings: IncreaseSettings,
    opened: AsyncExitStack,
    *,
    connections: int,
    ca_file: str | None,
    timeout_seconds: float,
) -> Clients:
    """Their session is closed with `opened`."""
    session = await opened.enter_async_context(open_session(connections, ca_file=ca_file))
    return Clients(settings, session, timeout_seconds, connections)
