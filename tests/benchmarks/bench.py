"""What a benchmark is handed: the servers, a folder, and how long to measure."""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from deploy.local import banks
from deploy.local.services import Service
from tests.benchmarks.figures import Figure
from tests.benchmarks.rounds import Plan
from tests.benchmarks.servers import Servers
from tests.support.launching import launched
from tests.support.stack import SERVED, Stack, running_stack


@dataclass(frozen=True)
class Bench:
    servers: Servers
    plan: Plan

    @contextlib.asynccontextmanager
    async def stack(
        self,
        services: Iterable[Service] = SERVED,
        /,
        *,
        bank: str = banks.SANDBOX,
        **settings: str,
    ) -> AsyncIterator[Stack]:
        """All services as processes, on a database and a virtual host of their own."""
        environment = await self.servers.environment()
        with tempfile.TemporaryDirectory(prefix="bankside-bench-") as folder:
            running = running_stack(
                environment, Path(folder), services, launched, bank=bank, **settings
            )
            async with running as stack:
                yield stack


Run = Callable[[Bench], Awaitable[list[Figure]]]
