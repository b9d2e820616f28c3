"""The providers of ledger_read: each role by the company that is chosen for it."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AsyncExitStack

from libs.persistence.engine import Database
from libs.providers.companies import Role
from libs.runtime.provider_adapters import open_by_role
from services.ledger_read.ports import Adapters, Ownership, Providers
from services.ledger_read.settings import Settings

PACKAGE = "services.ledger_read.adapters"


async def open_providers(
    settings: Settings, opened: AsyncExitStack, database: Database, ownership: Ownership
) -> Providers:
    """Closed with `opened`. Raises Misconfigured."""
    adapters: Mapping[Role, Adapters] = await open_by_role(
        PACKAGE, settings, opened, database, ownership
    )
    return Providers(adapters[Role.FINANCIAL].financial())
