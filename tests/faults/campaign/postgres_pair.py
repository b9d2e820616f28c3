"""A PostgreSQL primary whose commits wait for a standby, and what an operator does when the primary is lost."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import os
import shutil
import subprocess
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import asyncpg

from deploy.local.ports import LOOPBACK
from deploy.local.postgres import SUPERUSER, Postgres
from deploy.local.services import Secrets
from libs.runtime.supervision import Supervisor
from tests.faults.campaign.small_disk import NoSmallDisk, SmallDisk
from tests.support.infrastructure import START_SECONDS
from tests.support.ports import free_ports

SETTINGS = (
    *("-c", "wal_keep_size=512MB"),
    *("-c", "wal_retrieve_retry_interval=1s"),
    *("-c", "checkpoint_timeout=60s"),
)
"""A standby that was away for a while finds what it missed. It connects again within a second: commits wait for it. A
server that was killed replays at most what a minute has written: with the default of five it took nine seconds.
"""
IN_PAIR = "ALTER SYSTEM SET synchronous_standby_names = 'ANY 1 (*)'"
RELOAD = "SELECT pg_reload_conf()"
IS_IN_STEP = "SELECT count(*) FROM pg_stat_replication WHERE sync_state IN ('sync', 'quorum')"


class PostgresPair:
    """Two servers, of which one is the primary; both are kept running by the supervisor.

    Each has a disk of its own that can be full, where the machine gives such.
    """

    def __init__(self, home: Path, secrets: Secrets, supervisor: Supervisor) -> None:
        home.mkdir(mode=0o711)
        self._home = home
        self._secrets = secrets
        self._supervisor = supervisor
        self._numbers = iter(range(1, 10_000))
        self.primary = self._new()
        self.standby: Postgres | None = None
        self._disks: dict[int, SmallDisk] = {}
        """By the port of the server on it."""
        self._opened = AsyncExitStack()
        self.no_disks = ""
        """Why there are none."""

    def addresses(self) -> Sequence[int]:
        return [self.primary.port]

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Both, in step. Their disks last until the block ends."""
        async with self._opened:
            await asyncio.to_thread(self.primary.initialise)
            await self._mount(self.primary)
            await self._run(self.primary)
            await self._attach_standby()
            yield

    async def fill_disk(self) -> None:
        """The primary's: the standby has room."""
        await self._disks[self.primary.port].fill()

    async def free_disk(self) -> None:
        await self._disks[self.primary.port].free()

    async def begin_wal_segment(self) -> None:
        """The next commit begins a file of the WAL, unless the server has ended already."""
        gone = (asyncpg.PostgresError, asyncpg.InterfaceError, OSError, TimeoutError)
        with contextlib.suppress(*gone):
            await self._execute("SELECT pg_switch_wal()")

    async def _mount(self, server: Postgres) -> None:
        """Unless it was found that this machine gives no such disks."""
        if self.no_disks:
            return
        spec = server.child(None)
        disk = SmallDisk(server.data, spec.user, spec.group)
        try:
            await self._opened.enter_async_context(disk.mounted())
        except NoSmallDisk as error:
            self.no_disks = str(error)
        else:
            self._disks[server.port] = disk

    def _on_disk(self, server: Postgres, command: Sequence[str]) -> tuple[str, ...]:
        disk = self._disks.get(server.port)
        return disk.inside(*command) if disk else tuple(command)

    async def lose_primary(self, unnoticed_seconds: float = 0.0) -> None:
        """`kill -9` of the primary, for good; after so many seconds the standby becomes the primary.

        It has every commit that was confirmed, and no standby of its own until `repair`.
        """
        assert self.standby is not None, "repaired"
        lost = self.primary
        name = _name(lost)
        self._supervisor.kill(name)
        await self._supervisor.stop(name)
        await asyncio.sleep(unnoticed_seconds)
        self.primary, self.standby = self.standby, None
        # What the lost primary did not pass on was not confirmed to anybody, and is not missed.
        await self._execute("SELECT pg_promote(true, 30)")
        shutil.rmtree(lost.home)

    def kill_primary(self) -> None:
        """`kill -9`; it is started again."""
        self._supervisor.kill(_name(self.primary))

    async def repair(self) -> None:
        """A new standby, from a base backup of the primary."""
        if self.standby is None:
            await self._attach_standby()

    def _new(self) -> Postgres:
        home = self._home / str(next(self._numbers))
        return Postgres(home, free_ports(1)[0], self._secrets.superuser_password)

    async def _attach_standby(self) -> None:
        standby = self._new()
        self._make_folders(standby)
        await self._mount(standby)
        await asyncio.to_thread(self._back_up, standby)
        await self._run(standby)
        self.standby = standby
        await self._execute(IN_PAIR, RELOAD)
        async with asyncio.timeout(START_SECONDS):
            while not await self._value(IS_IN_STEP):
                await asyncio.sleep(0.1)

    def _make_folders(self, standby: Postgres) -> None:
        server = self.primary.child(None)
        standby.home.mkdir(mode=0o711)
        standby.data.mkdir(mode=0o700)
        if server.user is not None and server.group is not None:
            os.chown(standby.data, server.user, server.group)

    def _back_up(self, standby: Postgres) -> None:
        server = self.primary.child(None)
        command = (
            str(Path(server.command[0]).with_name("pg_basebackup")),
            *("--pgdata", str(standby.data), "--wal-method", "stream", "--checkpoint", "fast"),
            *("--write-recovery-conf", "--no-password", "--no-sync"),
            *("--host", LOOPBACK, "--port", str(self.primary.port), "--username", SUPERUSER),
        )
        subprocess.run(
            self._on_disk(standby, command),
            env={**server.env, "PGPASSWORD": self.primary.password},
            cwd=standby.home,
            user=server.user,
            group=server.group,
            extra_groups=None if server.user is None else [],
            timeout=START_SECONDS,
            check=True,
        )

    async def _run(self, server: Postgres) -> None:
        spec = server.child(server.home.parent / "postgres.log")
        command = self._on_disk(server, (*spec.command, *SETTINGS))
        self._supervisor.start(dataclasses.replace(spec, name=_name(server), command=command))
        await self._supervisor.until_ready([_name(server)], START_SECONDS)

    async def _execute(self, *statements: str) -> None:
        connection = await self.primary.connect(SUPERUSER)
        try:
            for statement in statements:
                await connection.execute(statement)
        finally:
            await connection.close()

    async def _value(self, query: str) -> object:
        connection = await self.primary.connect(SUPERUSER)
        try:
            return await connection.fetchval(query)
        finally:
            await connection.close()


def _name(server: Postgres) -> str:
    return f"postgres {server.port}"
