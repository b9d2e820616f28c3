"""The providers of ledger_read: each role by the company that is chosen for it."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AsyncExitStack
from dataclasses import replace

from libs.persistence.engine import Database
from libs.providers.companies import Role
from libs.runtime.provider_adapters import open_by_role
from services.ledger_read.mirror.ledger import open_mirrored_ledger
from services.ledger_read.ports import Adapters, Providers
from services.ledger_read.settings import Settings

PACKAGE = "services.ledger_read.adapters"


async def open_providers(
    settings: Settings, opened: AsyncExitStack, database: Database
) -> Providers:
    """Closed with `opened`. Raises Misconfigured."""
    adapters: Mapping[Role, Adapters] = await open_by_role(PACKAGE, settings, opened, database)
    financial = adapters[Role.FINANCIAL].financial()
    if financial.postings is not None:
        ledger = await open_mirrored_ledger(
            opened, database, financial.postings, others=financial.ledger
        )
        financial = replace(financial, ledger=ledger)
    return Providers(financial)
