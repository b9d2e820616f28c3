"""Payments at Increase."""

from __future__ import annotations

from collections.abc import Collection
from contextlib import AsyncExitStack

from libs.providers.companies import Role
from libs.providers.increase.capabilities import WRITES
from libs.providers.increase.clients import Clients, open_clients
from libs.providers.increase.settings import IncreaseSettings
from services.payments.adapters.increase.core import IncreaseCoreBanking, NewestWires
from services.payments.adapters.increase.feed import WireFeed
from services.payments.ports import Adapters, Core
from services.payments.settings import Settings


class IncreaseAdapters:
    """See `ports.Adapters`."""

    def __init__(self, clients: Clients, settings: Settings) -> None:
        self._clients = clients
        self._writes = WRITES.within(settings.provider_key_hours, settings.provider_transit_seconds)

    def core(self) -> Core:
        client = self._clients.at(Role.CORE)
        return Core(
            IncreaseCoreBanking(client, self._writes),
            WireFeed(client).fetch,
            NewestWires(client).fetch,
        )


async def open_adapters(
    settings: Settings, _: Collection[Role], opened: AsyncExitStack
) -> Adapters:
    clients = await open_clients(
        IncreaseSettings.of(settings),
        opened,
        connections=settings.provider_connections,
        ca_file=settings.provider_ca_file,
        timeout_seconds=settings.provider_timeout_seconds,
    )
    return IncreaseAdapters(clients, settings)
