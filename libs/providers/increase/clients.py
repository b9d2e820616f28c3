"""The clients of one service at Increase."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack

import aiohttp

from libs.providers.companies import Role
from libs.providers.increase.client import IncreaseClient
from libs.providers.increase.settings import IncreaseSettings
from libs.providers.request_rate import RequestRate
from libs.providers.sessions import open_session


class Clients:
    """One for each role, on one session: circuit breaker and metrics are of the role.

    Together they retrieve as many objects at once as the session has connections: more requests would wait for one,
    each before the reads that come later. They share one rate, where there is one.
    """

    def __init__(
        self,
        settings: IncreaseSettings,
        session: aiohttp.ClientSession,
        timeout_seconds: float,
        connections: int,
        requests_per_second: float | None = None,
    ) -> None:
        self._settings = settings
        self._session = session
        self._timeout_seconds = timeout_seconds
        self._retrievals = asyncio.Semaphore(connections)
        self._rate = None if requests_per_second is None else RequestRate(requests_per_second)

    def at(self, role: Role) -> IncreaseClient:
        return IncreaseClient(
            role.value,
            self._settings.increase_url,
            self._settings.increase_key.get_secret_value(),
            self._session,
            timeout_seconds=self._timeout_seconds,
            retrievals=self._retrievals,
            rate=self._rate,
        )


async def open_clients(
    settings: IncreaseSettings,
    opened: AsyncExitStack,
    *,
    connections: int,
    ca_file: str | None,
    timeout_seconds: float,
    requests_per_second: float | None = None,
) -> Clients:
    """Their session is closed with `opened`.

    Args:
        requests_per_second: of all of them together, at most; None: as many as are answered.
    """
    session = await opened.enter_async_context(open_session(connections, ca_file=ca_file))
    return Clients(settings, session, timeout_seconds, connections, requests_per_second)
