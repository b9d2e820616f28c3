"""Servers that one test has for itself, because it kills them. They come back by themselves, as in the local stack."""

from __future__ import annotations

import asyncio
import contextlib
import tempfile
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from deploy.local.services import DATABASE, Secrets
from libs.runtime.supervision import Supervisor
from tests.support.infrastructure import (
    START_SECONDS,
    environment_urls,
    migrate,
    new_postgres,
    new_rabbitmq,
)
from tests.support.waiting import eventually


@dataclass(frozen=True)
class OwnPostgres:
    database_urls: Mapping[str, str] = field(repr=False)
    """By role, as in Environment."""
    kill: Callable[[], None]
    """`kill -9` of the server; it is started again after half a second."""


@dataclass(frozen=True)
class OwnRabbitMQ:
    amqp_url: str = field(repr=False)
    home: Path
    kill: Callable[[], None]

    async def settled(self) -> None:
        """Wait until a kill finds nothing but what the node has on disk."""
        await until_settled(self.home)


async def until_settled(home: Path) -> None:
    """Wait until the node with its files in `home` has written down which quorum queues it has.

    RabbitMQ 3.10 keeps a new one's name in memory for a second. Killed within it, the node comes back with a queue
    that nobody leads.
    """

    async def is_settled() -> bool:
        registers = list(home.rglob("names.dets"))
        return bool(registers) and all(
            queue.name.encode() in register.read_bytes()
            for register in registers
            for queue in register.parent.iterdir()
            if queue.is_dir()
        )

    await eventually("the node knows its quorum queues", is_settled)


@contextlib.asynccontextmanager
async def own_postgres(secrets: Secrets, *, migrated: bool = True) -> AsyncIterator[OwnPostgres]:
    """A server of its own with roles, schemas and, when `migrated`, tables."""
    with _own_folder() as home:
        postgres = new_postgres(home / "postgres", secrets)
        await asyncio.to_thread(postgres.initialise)
        async with Supervisor() as supervisor:
            supervisor.start(postgres.child(home / "postgres.log"))
            await supervisor.until_ready(["postgres"], START_SECONDS)
            await postgres.create_database(DATABASE)
            await asyncio.to_thread(postgres.create_schemas, DATABASE, secrets.schema_passwords())
            urls = environment_urls(postgres, secrets, DATABASE)
            if migrated:
                await asyncio.to_thread(migrate, urls)
            yield OwnPostgres(urls, kill=lambda: supervisor.kill("postgres"))


@contextlib.asynccontextmanager
async def own_rabbitmq(secrets: Secrets) -> AsyncIterator[OwnRabbitMQ]:
    """A node of its own; takes 5 s to start."""
    with _own_folder() as home:
        rabbitmq = new_rabbitmq(home / "rabbitmq", secrets)
        rabbitmq.prepare()
        async with Supervisor() as supervisor:
            for spec in rabbitmq.children(home / "epmd.log", home / "rabbitmq.log"):
                supervisor.start(spec)
            await supervisor.until_ready(["rabbitmq"], START_SECONDS)
            yield OwnRabbitMQ(
                rabbitmq.url(), rabbitmq.home, kill=lambda: supervisor.kill("rabbitmq")
            )


@contextlib.contextmanager
def _own_folder() -> Iterator[Path]:
    """Not pytest's: only we may enter that, and PostgreSQL may run as another user than we do."""
    with tempfile.TemporaryDirectory(prefix="bankside-test-") as name:
        Path(name).chmod(0o711)
        yield Path(name)
