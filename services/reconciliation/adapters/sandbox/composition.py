"""Reconciliation at the sandbox."""

from __future__ import annotations

from collections.abc import Collection
from contextlib import AsyncExitStack
from functools import partial

from libs.providers.companies import Role
from libs.providers.sandbox.clients import Clients, open_clients
from libs.providers.sandbox.settings import SandboxSettings
from services.reconciliation.adapters.sandbox.lists import (
    SandboxFinancial,
    SandboxList,
    newest_entry,
)
from services.reconciliation.ports import (
    Adapters,
    Balance,
    Core,
    CoreAccount,
    CoreCustomer,
    CoreExternalAccount,
    CoreWire,
    FinancialRole,
    Identity,
    IdentityRecord,
)
from services.reconciliation.settings import Settings


class SandboxAdapters:
    """See `ports.Adapters`."""

    def __init__(self, clients: Clients, page_size: int) -> None:
        self._clients = clients
        self._page_size = page_size

    def identity(self) -> Identity:
        client, size = self._clients.at(Role.IDENTITY), self._page_size
        return Identity(
            SandboxList(client, "/customers", "customers", IdentityRecord, page_size=size),
            partial(newest_entry, client),
        )

    def core(self) -> Core:
        client, size = self._clients.at(Role.CORE), self._page_size
        return Core(
            SandboxList(client, "/customers", "customers", CoreCustomer, page_size=size),
            SandboxList(client, "/accounts", "accounts", CoreAccount, page_size=size),
            SandboxList(
                client,
                "/external-accounts",
                "external_accounts",
                CoreExternalAccount,
                page_size=size,
            ),
            SandboxList(client, "/wires", "wires", CoreWire, page_size=size),
            partial(newest_entry, client),
        )

    def financial(self) -> FinancialRole:
        client, size = self._clients.at(Role.FINANCIAL), self._page_size
        return FinancialRole(
            SandboxFinancial(client, page_size=size),
            SandboxList(client, "/balances", "balances", Balance, page_size=size),
            partial(newest_entry, client),
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
    return SandboxAdapters(clients, settings.page_size)
