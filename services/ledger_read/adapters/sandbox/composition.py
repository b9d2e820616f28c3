"""ledger_read at the sandbox."""

from __future__ import annotations

from collections.abc import Collection
from contextlib import AsyncExitStack

from libs.persistence.engine import Database
from libs.providers.companies import Role
from libs.providers.sandbox.clients import open_clients
from libs.providers.sandbox.http import ProviderClient
from libs.providers.sandbox.settings import SandboxSettings
from services.ledger_read.adapters.sandbox.financial import SandboxFinancial
from services.ledger_read.adapters.sandbox.financial_feed import FinancialFeed
from services.ledger_read.adapters.sandbox.ledger import SandboxLedger
from services.ledger_read.adapters.sandbox.postings import SandboxPostings
from services.ledger_read.mirror.ledger import open_mirrored_ledger
from services.ledger_read.ports import Adapters, FinancialRole, Ledger, Ownership
from services.ledger_read.settings import Settings


class SandboxAdapters:
    """See `ports.Adapters`."""

    def __init__(self, client: ProviderClient, ledger: Ledger) -> None:
        self._client = client
        self._ledger = ledger

    def financial(self) -> FinancialRole:
        return FinancialRole(
            SandboxFinancial(self._client), self._ledger, FinancialFeed(self._client).fetch
        )


async def open_adapters(
    settings: Settings,
    _: Collection[Role],
    opened: AsyncExitStack,
    database: Database,
    __: Ownership,
) -> Adapters:
    clients = await open_clients(
        SandboxSettings.of(settings),
        opened,
        connections=settings.provider_connections,
        ca_file=settings.provider_ca_file,
        timeout_seconds=settings.provider_timeout_seconds,
    )
    client = clients.at(Role.FINANCIAL)
    ledger: Ledger = SandboxLedger(client)
    if settings.mirror:
        ledger = await open_mirrored_ledger(
            opened, database, SandboxPostings(client), others=ledger
        )
    return SandboxAdapters(client, ledger)
