"""PostgreSQL and RabbitMQ of a run: the tests' servers, but durable, as in production: fsync is on.

They live in a folder of their own on loopback ports, and end with the `async with`.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import tempfile
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path

from deploy.local.postgres import SUPERUSER, Postgres
from deploy.local.rabbitmq import RabbitMQ
from deploy.local.services import Secrets
from libs.runtime.supervision import Supervisor
from tests.support.infrastructure import (
    START_SECONDS,
    Environment,
    environment_urls,
    migrate,
    new_rabbitmq,
)
from tests.support.ports import free_ports

SERVERS = ("postgres", "rabbitmq")


@dataclass
class Servers:
    postgres: Postgres
    rabbitmq: RabbitMQ
    secrets: Secrets = field(repr=False)
    supervisor: Supervisor
    _numbers: itertools.count[int] = field(default_factory=lambda: itertools.count(1))

    def url(self, database: str) -> str:
        """The superuser's."""
        return self.postgres.url(SUPERUSER, self.secrets.superuser_password, database)

    def pids(self) -> dict[str, int]:
        children = {name: self.supervisor.children[name].identity for name in SERVERS}
        return {name: child.pid for name, child in children.items() if child is not None}

    async def database(self) -> str:
        """A new and empty one."""
        name = f"bench_{next(self._numbers)}"
        await self.postgres.create_database(name)
        return name

    async def environment(self) -> Environment:
        """A migrated database and a virtual host that nobody else uses."""
        name = await self.database()
        await self.rabbitmq.create_vhosts(name)
        await asyncio.to_thread(self.postgres.create_schemas, name, self.secrets.schema_passwords())
        urls = environment_urls(self.postgres, self.secrets, name)
        await asyncio.to_thread(migrate, urls)
        return Environment(name, urls, self.rabbitmq.url(name), self.secrets)


@contextlib.asynccontextmanager
async def running_servers() -> AsyncIterator[Servers]:
    secrets = Secrets.generate()
    with tempfile.TemporaryDirectory(prefix="bankside-bench-") as name:
        home = Path(name)
        home.chmod(0o711)  # PostgreSQL may run as another user than we do
        postgres = Postgres(home / "postgres", free_ports(1)[0], secrets.superuser_password)
        rabbitmq = new_rabbitmq(home / "rabbitmq", secrets)
        rabbitmq.prepare()
        await asyncio.to_thread(postgres.initialise)
        async with Supervisor() as supervisor:
            for spec in rabbitmq.children(home / "epmd.log", home / "rabbitmq.log"):
                supervisor.start(spec)
            supervisor.start(postgres.child(home / "postgres.log"))
            await supervisor.until_ready(SERVERS, START_SECONDS)
            yield Servers(postgres, rabbitmq, secrets, supervisor)
