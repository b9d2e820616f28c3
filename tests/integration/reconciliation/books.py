"""What a test of reconciliation does to the books of either side."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import Any

import asyncpg

from services.reconciliation.repository.recorded import RecordedDifference
from tests.support.live import Live
from tests.support.reconciling import reconcile

SIDES = ("payments", "onboarding", "provider_sandbox", "reconciliation")


@dataclass(frozen=True)
class Books:
    live: Live
    databases: Mapping[str, asyncpg.Connection]
    """By service: to change what it holds beneath it."""

    async def execute(self, service: str, statement: str, *values: Any) -> None:
        done = await self.databases[service].execute(statement, *values)
        assert not done.endswith(" 0"), f"{statement} changed nothing"

    async def differences(self) -> list[RecordedDifference]:
        """What is open after a run from now on."""
        run, found = await reconcile(self.live.stack)
        assert run.in_flight == 0
        return found

    async def kinds(self) -> Counter[str]:
        return Counter(one.kind for one in await self.differences())

    async def core_id(self, customer_id: str) -> str:
        return str(
            await self.databases["provider_sandbox"].fetchval(
                "SELECT core_id FROM core_customer WHERE customer_id = $1", customer_id
            )
        )

    async def identity_id(self, customer_id: str) -> str:
        return str(
            await self.databases["provider_sandbox"].fetchval(
                "SELECT identity_id FROM identity_record WHERE customer_id = $1", customer_id
            )
        )


@asynccontextmanager
async def open_books(live: Live) -> AsyncIterator[Books]:
    async with AsyncExitStack() as opened:
        databases = {}
        for service in SIDES:
            url = live.stack.environment.database_urls[f"{service}_owner"]
            databases[service] = await asyncpg.connect(url)
            opened.push_async_callback(databases[service].close)
        yield Books(live, databases)
