"""Onboarding at the sandbox."""

from __future__ import annotations

from collections.abc import Collection
from contextlib import AsyncExitStack

from libs.providers.companies import Role
from libs.providers.newest_records import FetchNewest
from libs.providers.sandbox.capabilities import CORE_WRITES, IDENTITY_WRITES
from libs.providers.sandbox.clients import Clients, open_clients
from libs.providers.sandbox.http import ProviderClient
from libs.providers.sandbox.listed_records import ListedRecords
from libs.providers.sandbox.settings import SandboxSettings
from services.onboarding.adapters.sandbox.core import SandboxCoreBanking
from services.onboarding.adapters.sandbox.feeds import FinancialFeed, IdentityFeed
from services.onboarding.adapters.sandbox.identity import SandboxIdentityProvider
from services.onboarding.ports import Adapters, Core, Financial, Identity
from services.onboarding.settings import Settings


class SandboxAdapters:
    """See `ports.Adapters`."""

    def __init__(self, clients: Clients, settings: Settings) -> None:
        self._clients = clients
        self._settings = settings

    def identity(self) -> Identity:
        client = self._clients.at(Role.IDENTITY)
        promised = IDENTITY_WRITES.within(
            self._settings.identity_key_hours, self._settings.provider_transit_seconds
        )
        writes = SandboxIdentityProvider(client, promised)
        return Identity(writes, IdentityFeed(client).fetch, newest_customers(client))

    def core(self) -> Core:
        client = self._clients.at(Role.CORE)
        promised = CORE_WRITES.within(
            self._settings.core_key_hours, self._settings.provider_transit_seconds
        )
        writes = SandboxCoreBanking(client, promised)
        return Core(writes, newest_customers(client))

    def financial(self) -> Financial:
        return Financial(FinancialFeed(self._clients.at(Role.FINANCIAL)).fetch)


def newest_customers(client: ProviderClient) -> FetchNewest:
    """Of the identity provider or of core banking."""
    return ListedRecords(client, "customers", "customer_id").fetch


async def open_adapters(
    settings: Settings, _: Collection[Role], opened: AsyncExitStack
) -> Adapters:
    clients = await open_clients(
        SandboxSettings.of(settings),
        opened,
        connections=settings.provider_connections,
        ca_file=settings.provider_ca_file,
        timeout_seconds=settings.provider_timeout_seconds,
    )
    return SandboxAdapters(clients, settings)
