"""The clients of one service at Increase."""

from __future__ import annotations

from contextlib import AsyncExitStack

import aiohttp

from libs.providers.companies import Role
from libs.providers.increase.client import IncreaseClient
from libs.providers.increase.settings import IncreaseSettings
from libs.providers.sessions import open_session


class Clients:
    """One for each role, on one session: circuit breaker and metrics are of the role."""

    def __init__(
        self, settings: IncreaseSettings, session: aiohttp.ClientSession, timeout_seconds: float
    ) -> None:
        self._settings = settings
        self._session = session
        self._timeout_seconds = timeout_seconds

    def at(self, role: Role) -> IncreaseClient:
        return IncreaseClient(
            role.value,
            self._settings.increase_url,
            self._settings.increase_key.get_secret_value(),
            self._session,
            timeout_seconds=self._timeout_seconds,
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
    return Clients(settings, session, timeout_seconds)
