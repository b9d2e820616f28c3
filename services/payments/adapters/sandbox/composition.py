"""Payments at the sandbox."""

from __future__ import annotations

from collections.abc import Collection
from contextlib import AsyncExitStack

from libs.providers.companies import Role
from libs.providers.sandbox.capabilities import CORE_WRITES
from libs.providers.sandbox.clients import Clients, open_clients
from libs.providers.sandbox.listed_records import ListedRecords
from libs.providers.sandbox.settings import SandboxSettings
from services.payments.adapters.sandbox.core import CoreFeed, SandboxCoreBanking
from services.payments.ports import Adapters, Core
from services.payments.settings import Settings


class SandboxAdapters:
    """See `ports.Adapters`."""

    def __init__(self, clients: Clients, settings: Settings) -> None:
        self._clients = clients
        self._settings = settings

    def core(self) -> Core:
        client = self._clients.at(Role.CORE)
        writes = CORE_WRITES.within(
            self._settings.provider_key_hours, self._settings.provider_transit_seconds
        )
        return Core(
            SandboxCoreBanking(client, writes),
            CoreFeed(client).fetch,
            ListedRecords(client, "wires", "transaction_id").fetch,
        )


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
