"""Reconciliation at Increase."""

from __future__ import annotations

from collections.abc import Collection
from contextlib import AsyncExitStack
from functools import partial

from libs.providers.companies import Role
from libs.providers.increase.clients import Clients, open_clients
from libs.providers.increase.settings import IncreaseSettings
from services.reconciliation.adapters.increase import lists, parties
from services.reconciliation.ports import Adapters, Core, FinancialRole, Identity
from services.reconciliation.settings import Settings


class IncreaseAdapters:
    """See `ports.Adapters`."""

    def __init__(self, clients: Clients) -> None:
        self._clients = clients

    def identity(self) -> Identity:
        client = self._clients.at(Role.IDENTITY)
        return Identity(
            parties.customers(client, parties.identity_record),
            partial(lists.newest_entry, client, Role.IDENTITY),
        )

    def core(self) -> Core:
        client = self._clients.at(Role.CORE)
        return Core(
            parties.customers(client, parties.core_customer),
            lists.accounts(client),
            lists.external_accounts(client),
            lists.wires(client),
            partial(lists.newest_entry, client, Role.CORE),
            posts_wires=False,
        )

    def financial(self) -> FinancialRole:
        client = self._clients.at(Role.FINANCIAL)
        return FinancialRole(None, None, partial(lists.newest_entry, client, Role.FINANCIAL))


async def open_adapters(
    settings: Settings, _: Collection[Role], opened: AsyncExitStack
) -> Adapters:
    clients = await open_clients(
        IncreaseSettings.of(settings),
        opened,
        connections=settings.provider_connections,
        ca_file=settings.provider_ca_file,
        timeout_seconds=settings.provider_timeout_seconds,
        requests_per_second=settings.provider_requests_per_second,
    )
    return IncreaseAdapters(clients)
