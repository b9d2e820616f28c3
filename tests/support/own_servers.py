"""Servers that one test has for itself, because it kills them. They come back by themselves, as in the local stack."""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import subprocess
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from deploy.local.ports import LOOPBACK
from deploy.local.postgres import SUPERUSER, Postgres
from deploy.local.services import DATABASE, Secrets
from libs.runtime.supervision import ChildSpec, Supervisor
from tests.support.infrastructure import (
    FIRST_LIFE,
    START_SECONDS,
    Environment,
    copy_cluster,
    environment_urls,
    new_cluster,
    new_postgres,
    new_rabbitmq,
)
from tests.support.servers_folder import servers_folder
from tests.support.waiting import eventually


@dataclass(frozen=True)
class OwnPostgres:
    database_urls: Mapping[str, str] = field(repr=False)
    """By role, as in Environment."""
    postgres: Postgres
    supervisor: Supervisor = field(repr=False)
    log_path: Path

    def kill(self) -> None:
        """`kill -9` of the server; it is started again after half a second."""
        self.supervisor.kill("postgres")

    async def back_up(self) -> None:
        """Take a base backup of the running server, with the WAL that makes it consistent."""
        server = self.postgres.child(None)
        self._backup.mkdir(mode=0o700)
        _give_to_server(self.postgres, self._backup)
        await asyncio.to_thread(
            subprocess.run,
            [
                str(Path(server.command[0]).with_name("pg_basebackup")),
                *("--pgdata", str(self._backup), "--wal-method", "stream"),
                *("--checkpoint", "fast", "--no-sync", "--no-password"),
                *("--host", LOOPBACK, "--port", str(self.postgres.port), "--username", SUPERUSER),
            ],
            env={**server.env, "PGPASSWORD": self.postgres.password},
            cwd=self.postgres.home,
            user=server.user,
            group=server.group,
            extra_groups=None if server.user is None else [],
            timeout=START_SECONDS,
            check=True,
        )

    async def now(self) -> datetime:
        """By the server's clock."""
        async with _connected(self.postgres) as connection:
            now: datetime = await connection.fetchval("SELECT clock_timestamp()")
            return now

    async def restore(self, moment: datetime) -> None:
        """`kill -9` of the server, and start it on the backup and the archive, up to this moment: what was committed
        later is forgotten.
        """
        await self._archive_what_is_written()
        self.supervisor.kill("postgres")
        await self.supervisor.stop("postgres")
        shutil.rmtree(self.postgres.data)
        self._backup.rename(self.postgres.data)
        _configure(
            self.postgres,
            restore_command=f"cp {_archive_of(self.postgres)}/%f %p",
            recovery_target_time=moment.isoformat(),
            recovery_target_action="promote",
        )
        signal_file = self.postgres.data / "recovery.signal"
        signal_file.touch()
        _give_to_server(self.postgres, signal_file)
        self.supervisor.start(self.postgres.child(self.log_path))
        await self.supervisor.until_ready(["postgres"], START_SECONDS)

    async def _archive_what_is_written(self) -> None:
        async with _connected(self.postgres) as connection:
            written = await connection.fetchval("SELECT pg_walfile_name(pg_switch_wal())")

            async def is_archived() -> bool:
                newest = await connection.fetchval("SELECT last_archived_wal FROM pg_stat_archiver")
                return bool(newest and newest >= written)

            await eventually("what is written is archived", is_archived)

    @property
    def _backup(self) -> Path:
        return self.postgres.home / "backup"


@dataclass(frozen=True)
class OwnRabbitMQ:
    amqp_url: str = field(repr=False)
    home: Path
    kill: Callable[[], None]
    node: ChildSpec = field(repr=False)

    async def settled(self) -> None:
        """Wait until a kill finds nothing but what the node has on disk."""
        await until_settled(self.home)

    async def block_publishers(self) -> None:
        """Raise the alarm of memory: from now on the node reads nothing from connections that have published.

        A node that is started anew begins with the configured limit, and without the alarm.
        """
        await self._limit_memory("{absolute, 1}")

    async def unblock_publishers(self) -> None:
        """End the alarm, as consumers do who drain the queues."""
        await self._limit_memory("0.9")

    async def _limit_memory(self, limit: str) -> None:
        """As `rabbitmqctl set_vm_memory_high_watermark`, without the Erlang node that it starts for itself."""
        erlang = Path(shutil.which("erl") or "erl").resolve().parents[1]
        [erl_call] = erlang.glob("erts-*/bin/erl_call")
        await asyncio.to_thread(
            subprocess.run,
            [
                *(str(erl_call), "-sname", self.node.env["RABBITMQ_NODENAME"]),
                *("-c", (self.home / ".erlang.cookie").read_text()),
                *("-a", f"vm_memory_monitor set_vm_memory_high_watermark [{limit}]"),
            ],
            env=dict(self.node.env),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            timeout=START_SECONDS,
            check=True,
        )


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


def _archive_of(postgres: Postgres) -> Path:
    return postgres.home / "archive"


def _configure(postgres: Postgres, **settings: str) -> None:
    """For the next start."""
    with (postgres.data / "postgresql.auto.conf").open("a") as opened:
        opened.writelines(f"{name} = '{value}'\n" for name, value in settings.items())


def _give_to_server(postgres: Postgres, path: Path) -> None:
    """To the account that PostgreSQL runs as."""
    server = postgres.child(None)
    if server.user is not None and server.group is not None:
        os.chown(path, server.user, server.group)


@contextlib.asynccontextmanager
async def _connected(postgres: Postgres) -> AsyncIterator[Any]:
    connection = await postgres.connect(DATABASE)
    try:
        yield connection
    finally:
        await connection.close()


@contextlib.asynccontextmanager
async def own_postgres(
    environment: Environment, *, archives: bool = False
) -> AsyncIterator[OwnPostgres]:
    """A server of its own with the environment's roles and every table: a copy of what the run has made once.

    Args:
        archives: its WAL, from its start on, as `OwnPostgres.restore` needs it.
    """
    with servers_folder() as home:
        postgres = new_postgres(home / "postgres", environment.secrets)
        await asyncio.to_thread(lambda: copy_cluster(environment.cluster, postgres))
        if archives:
            archive = _archive_of(postgres)
            archive.mkdir(mode=0o700)
            _give_to_server(postgres, archive)
            _configure(postgres, archive_mode="on", archive_command=f"cp %p {archive}/%f")
        async with _running(postgres, environment.secrets) as own:
            yield own


@contextlib.asynccontextmanager
async def newly_migrated_postgres(secrets: Secrets) -> AsyncIterator[OwnPostgres]:
    """The same without a run's servers (6 s)."""
    with servers_folder() as home:
        postgres = new_postgres(home / "postgres", secrets)
        await new_cluster(postgres, secrets)
        async with _running(postgres, secrets) as own:
            yield own


@contextlib.asynccontextmanager
async def _running(postgres: Postgres, secrets: Secrets) -> AsyncIterator[OwnPostgres]:
    log_path = postgres.home / "postgres.log"
    async with Supervisor() as supervisor:
        supervisor.start(postgres.child(log_path))
        await supervisor.until_ready(["postgres"], START_SECONDS)
        async with _connected(postgres) as connection:
            await connection.execute(FIRST_LIFE)
        urls = environment_urls(postgres, secrets, DATABASE)
        yield OwnPostgres(urls, postgres, supervisor, log_path)


@contextlib.asynccontextmanager
async def own_rabbitmq(secrets: Secrets) -> AsyncIterator[OwnRabbitMQ]:
    """A node of its own; takes 5 s to start."""
    with servers_folder() as home:
        rabbitmq = new_rabbitmq(home / "rabbitmq", secrets)
        rabbitmq.prepare()
        async with Supervisor() as supervisor:
            port_mapper, node = rabbitmq.children(home / "epmd.log", home / "rabbitmq.log")
            for spec in (port_mapper, node):
                supervisor.start(spec)
            await supervisor.until_ready(["rabbitmq"], START_SECONDS)
            yield OwnRabbitMQ(
                rabbitmq.url(), rabbitmq.home, lambda: supervisor.kill("rabbitmq"), node
            )
