"""ledger_read at the sandbox."""

from __future__ import annotations

from collections.abc import Collection
from contextlib import AsyncExitStack

from libs.persistence.engine import Database
from libs.providers.companies import Role
from libs.providers.sandbox.clients import Clients, open_clients
from libs.providers.sandbox.settings import SandboxSettings
from services.ledger_read.adapters.sandbox.financial import SandboxFinancial
from services.ledger_read.adapters.sandbox.financial_feed import FinancialFeed
from services.ledger_read.adapters.sandbox.ledger import SandboxLedger
from services.ledger_read.adapters.sandbox.postings import SandboxPostings
from services.ledger_read.ports import FinancialRole
from services.ledger_read.settings import Settings


class SandboxAdapters:
    """See `ports.Adapters`."""

    def __init__(self, clients: Clients, *, is_mirrored: bool) -> None:
        self._clients = clients
        self._is_mirrored = is_mirrored

    def financial(self) -> FinancialRole:
        client = self._clients.at(Role.FINANCIAL)
        return FinancialRole(
            SandboxFinancial(client),
            SandboxLedger(client),
            FinancialFeed(client).fetch,
            SandboxPostings(client) if self._is_mirrored else None,
        )


async def open_adapters(
    settings: Settings, _: Collection[Role], opened: AsyncExitStack, __: Database
) -> SandboxAdapters:
    clients = await open_clients(
        SandboxSettings.of(settings),
        opened,
        connections=settings.provider_connections,
        ca_file=settings.provider_ca_file,
        timeout_seconds=settings.provider_timeout_seconds,
    )
    return SandboxAdapters(clients, is_mirrored=settings.mirror)
