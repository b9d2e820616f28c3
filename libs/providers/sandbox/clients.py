"""The clients of one service at the sandbox."""

from __future__ import annotations

from contextlib import AsyncExitStack

import aiohttp

from libs.providers.companies import Role
from libs.providers.sandbox.http import ProviderClient
from libs.providers.sandbox.settings import SandboxSettings
from libs.providers.sessions import open_session


class Clients:
    """One for each role, on one session."""

    def __init__(
        self, settings: SandboxSettings, session: aiohttp.ClientSession, timeout_seconds: float
    ) -> None:
        self._settings = settings
        self._session = session
        self._timeout_seconds = timeout_seconds

    def at(self, role: Role) -> ProviderClient:
        login = self._settings.login(role)
        return ProviderClient(
            role.value,
            login.url,
            login.secret,
            self._session,
            timeout_seconds=self._timeout_seconds,
        )


async def open_clients(
    settings: SandboxSettings,
    opened: AsyncExitStack,
    *,
    connections: int,
    ca_file: str | None,
    timeout_seconds: float,
) -> Clients:
    """Their session is closed with `opened`."""
    session = await opened.enter_async_context(open_session(connections, ca_file=ca_file))
    return Clients(settings, session, timeout_seconds)
