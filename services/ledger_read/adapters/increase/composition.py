"""ledger_read at Increase."""

from __future__ import annotations

from collections.abc import Collection
from contextlib import AsyncExitStack

from libs.persistence.engine import Database
from libs.providers.companies import Role
from libs.providers.increase.client import IncreaseClient
from libs.providers.increase.clients import open_clients
from libs.providers.increase.settings import IncreaseSettings
from services.ledger_read.adapters.increase.accounts import IncreaseFinancial
from services.ledger_read.adapters.increase.feed import IncreaseFinancialFeed
from services.ledger_read.adapters.increase.ledger import IncreaseLedger
from services.ledger_read.adapters.increase.numbers import AccountNumbers
from services.ledger_read.adapters.increase.postings import IncreasePostings
from services.ledger_read.adapters.increase.reading import Reader
from services.ledger_read.deposit_loads import DepositLoads
from services.ledger_read.mirror.ledger import open_mirrored_ledger
from services.ledger_read.mirror.named import NamedPostings
from services.ledger_read.mirror.store import PostingStore
from services.ledger_read.ports import Adapters, FinancialRole, Ownership
from services.ledger_read.settings import Settings
from services.ledger_read.waiting_entries import WaitingEntries


class IncreaseAdapters:
    """See `ports.Adapters`."""

    def __init__(self, role: FinancialRole) -> None:
        self._role = role

    def financial(self) -> FinancialRole:
        return self._role


async def open_adapters(
    settings: Settings,
    _: Collection[Role],
    opened: AsyncExitStack,
    database: Database,
    ownership: Ownership,
) -> Adapters:
    clients = await open_clients(
        IncreaseSettings.of(settings),
        opened,
        connections=settings.provider_connections,
        ca_file=settings.provider_ca_file,
        timeout_seconds=settings.provider_timeout_seconds,
    )
    role = await open_role(clients.at(Role.FINANCIAL), opened, database, ownership)
    return IncreaseAdapters(role)


async def open_role(
    client: IncreaseClient, opened: AsyncExitStack, database: Database, ownership: Ownership
) -> FinancialRole:
    reader = Reader(client)
    numbers = AccountNumbers(reader)
    financial = IncreaseFinancial(reader, numbers, ownership)
    postings = IncreasePostings(reader, numbers)
    named = NamedPostings(PostingStore(database))
    feed = IncreaseFinancialFeed(
        reader, financial, postings, named, ownership, WaitingEntries(database)
    )
    others = IncreaseLedger(reader, DepositLoads(database))
    ledger = await open_mirrored_ledger(opened, database, postings, others=others)
    return FinancialRole(financial, ledger, feed.fetch, feed.read_again)
