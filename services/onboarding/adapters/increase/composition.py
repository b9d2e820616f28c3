"""Onboarding at Increase."""

from __future__ import annotations

from collections.abc import Collection
from contextlib import AsyncExitStack

from libs.providers.companies import Role
from libs.providers.increase.capabilities import WRITES
from libs.providers.increase.clients import Clients, open_clients
from libs.providers.increase.settings import IncreaseSettings
from libs.providers.writing import Capabilities
from services.onboarding.adapters.increase.core import IncreaseCoreBanking
from services.onboarding.adapters.increase.feeds import FinancialFeed, IdentityFeed
from services.onboarding.adapters.increase.identity import IncreaseIdentityProvider
from services.onboarding.adapters.increase.newest import NewestAccounts, NewestEntities
from services.onboarding.ports import Adapters, Core, Financial, Identity
from services.onboarding.settings import Settings


class IncreaseAdapters:
    """See `ports.Adapters`."""

    def __init__(self, clients: Clients, roles: Collection[Role], settings: Settings) -> None:
        self._clients = clients
        self._is_identity = Role.IDENTITY in roles
        self._program_id = IncreaseSettings.of(settings).increase_program_id
        self._settings = settings

    def identity(self) -> Identity:
        client = self._clients.at(Role.IDENTITY)
        return Identity(
            IncreaseIdentityProvider(client, self._promised(self._settings.identity_key_hours)),
            IdentityFeed(client).fetch,
            NewestEntities(client).fetch,
        )

    def core(self) -> Core:
        client = self._clients.at(Role.CORE)
        writes = IncreaseCoreBanking(
            client,
            self._promised(self._settings.core_key_hours),
            is_identity=self._is_identity,
            program_id=self._program_id,
        )
        newest = NewestAccounts(client) if self._is_identity else NewestEntities(client)
        return Core(writes, newest.fetch)

    def financial(self) -> Financial:
        return Financial(FinancialFeed(self._clients.at(Role.FINANCIAL)).fetch)

    def _promised(self, key_hours: float | None) -> Capabilities:
        return WRITES.within(key_hours, self._settings.provider_transit_seconds)


async def open_adapters(
    settings: Settings, roles: Collection[Role], opened: AsyncExitStack
) -> Adapters:
    clients = await open_clients(
        IncreaseSettings.of(settings),
        opened,
        connections=settings.provider_connections,
        ca_file=settings.provider_ca_file,
        timeout_seconds=settings.provider_timeout_seconds,
    )
    return IncreaseAdapters(clients, roles, settings)
