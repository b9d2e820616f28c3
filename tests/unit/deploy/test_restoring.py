"""The steps of "Backups" in deploy/PRODUCTION.md bring a PostgreSQL back to a moment."""

from __future__ import annotations

import asyncio
import re
import subprocess
from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest_asyncio

from deploy.local.ports import LOOPBACK
from deploy.local.postgres import SUPERUSER, Postgres
from deploy.local.services import Secrets
from libs.runtime.supervision import Supervisor
from tests.support.infrastructure import START_SECONDS, new_postgres
from tests.support.servers_folder import servers_folder
from tests.support.waiting import eventually

DEPLOY = Path(__file__).resolve().parents[3] / "deploy"
PAGE = (DEPLOY / "PRODUCTION.md").read_text().partition("## Backups")[2]
BLOCKS = re.findall(r"(?ms)^( *)```sh\n(.*?)^\1```", PAGE)
[ARCHIVING] = [
    re.findall(r"(?m)^ *(archive_\w+ = .*)", text) for _, text in BLOCKS if "END" in text
]
[RESTORING] = [text for _, text in BLOCKS if "recovery.signal" in text]


@dataclass(frozen=True)
class Archived:
    """A server that archives its WAL as the page says, with one table of numbers."""

    postgres: Postgres
    supervisor: Supervisor

    @property
    def archive(self) -> Path:
        return self.postgres.home / "archive"

    def as_written(self, text: str) -> str:
        """What the page says, with the folders of this server."""
        home = self.postgres.home
        text = text.replace("/var/lib/postgresql/data", str(self.postgres.data))
        return text.replace("/archive", f"{home}/archive").replace("/backups", f"{home}/backups")

    def run(self, *command: str) -> subprocess.CompletedProcess[str]:
        """As the account of the server, with its programs."""
        server = self.postgres.child(None)
        programs = Path(server.command[0]).parent
        connection = {
            "PGHOST": LOOPBACK,
            "PGPORT": str(self.postgres.port),
            "PGUSER": SUPERUSER,
            "PGPASSWORD": self.postgres.password,
        }
        return subprocess.run(
            command,
            env={**server.env, **connection, "PATH": f"{programs}:{server.env['PATH']}"},
            cwd=self.postgres.home,
            user=server.user,
            group=server.group,
            extra_groups=None if server.user is None else [],
            capture_output=True,
            text=True,
            timeout=START_SECONDS,
            check=False,
        )

    def shell(self, text: str) -> None:
        done = self.run("sh", "-c", self.as_written(text))
        assert done.returncode == 0, done.stderr

    def configure(self, *settings: str) -> None:
        with (self.postgres.data / "postgresql.conf").open("a") as opened:
            opened.writelines(f"{self.as_written(setting)}\n" for setting in settings)

    async def start(self) -> None:
        self.supervisor.start(self.postgres.child(self.postgres.home / "postgres.log"))
        await self.supervisor.until_ready(["postgres"], START_SECONDS)

    async def value(self, statement: str) -> Any:
        connection = await self.postgres.connect("postgres")
        try:
            return await connection.fetchval(statement)
        finally:
            await connection.close()

    async def commit(self, number: int) -> datetime:
        """The moment after it, and before the next one."""
        await self.value(f"INSERT INTO numbers VALUES ({number})")
        moment: datetime = await self.value("SELECT clock_timestamp()")
        return moment

    async def numbers(self) -> list[int]:
        numbers: list[int] = await self.value("SELECT array_agg(n ORDER BY n) FROM numbers")
        return numbers

    async def back_up(self) -> None:
        command = ("pg_basebackup", "--pgdata=backups/DAY", "--wal-method=stream")
        done = await asyncio.to_thread(self.run, *command, "--checkpoint=fast")
        assert done.returncode == 0, done.stderr

    async def restore(self, moment: datetime, *settings: str) -> None:
        """Stop the server, and start it on the backup with these settings besides."""
        await self.supervisor.stop("postgres")
        await asyncio.to_thread(self.shell, RESTORING)
        self.configure(
            "restore_command = 'cp /archive/%f %p'",
            f"recovery_target_time = '{moment.isoformat()}'",
            "recovery_target_action = 'promote'",
            *settings,
        )
        await self.start()

        async def is_over() -> bool:
            return not await self.value("SELECT pg_is_in_recovery()")

        await eventually("recovery is over", is_over)


@pytest_asyncio.fixture
async def archived() -> AsyncIterator[Archived]:
    with servers_folder() as home:
        postgres = new_postgres(home / "postgres", Secrets.generate())
        await asyncio.to_thread(postgres.initialise)
        async with Supervisor() as supervisor:
            server = Archived(postgres, supervisor)
            # The server may run as another user than we do.
            for folder in (server.archive, postgres.home / "backups"):
                folder.mkdir()
                folder.chmod(0o777)
            server.configure(*ARCHIVING)
            await server.start()
            await server.value("CREATE TABLE numbers (n int)")
            yield server


async def test_what_was_committed_while_archiving_failed_is_restored(archived: Archived) -> None:
    check = ("psql", "-f", str(DEPLOY / "postgres" / "archiving.sql"), "postgres")
    await archived.back_up()
    await archived.commit(1)
    assert (await asyncio.to_thread(archived.run, *check)).returncode == 0
    # A disk that was full has left a part of a file.
    part = archived.archive / await archived.value("SELECT pg_walfile_name(pg_current_wal_lsn())")
    part.write_bytes(b"a part")
    await archived.commit(2)
    await archived.value("SELECT pg_switch_wal()")
    moment = await archived.commit(3)
    await archived.commit(4)

    async def fails() -> bool:
        return bool(await archived.value("SELECT failed_count FROM pg_stat_archiver"))

    await eventually("archiving fails", fails)
    refused = await asyncio.to_thread(archived.run, *check)
    await archived.restore(moment)

    assert await archived.numbers() == [1, 2, 3]
    assert refused.returncode != 0
    assert f"WAL is not archived: {part.name} failed at" in refused.stderr


async def test_a_second_restore_reaches_a_later_moment_on_the_timeline_that_it_names(
    archived: Archived,
) -> None:
    await archived.back_up()
    earlier = await archived.commit(1)
    later = await archived.commit(2)
    await archived.commit(3)

    await archived.restore(earlier)
    first = await archived.numbers()
    await archived.commit(100)
    await archived.restore(later, "recovery_target_timeline = '1'")

    assert "`recovery_target_timeline = 'N'`" in PAGE
    assert first == [1]
    assert await archived.numbers() == [1, 2]


async def test_what_is_written_after_a_second_restore_is_archived(archived: Archived) -> None:
    """Both end in WAL that was not archived before the first: each has a file of the same name for the archive."""
    await archived.back_up()
    part = archived.archive / await archived.value("SELECT pg_walfile_name(pg_current_wal_lsn())")
    part.write_bytes(b"a part")
    await archived.commit(1)
    earlier = await archived.commit(2)
    later = await archived.commit(3)
    await archived.commit(4)

    async def is_all_archived() -> bool:
        left = "SELECT count(*) FROM pg_ls_archive_statusdir() WHERE name LIKE '%.ready'"
        written = "SELECT last_archived_wal FROM pg_stat_archiver"
        return not await archived.value(left) and bool(await archived.value(written))

    await archived.restore(earlier)
    await eventually("the first restore is archived", is_all_archived)
    await archived.restore(later, "recovery_target_timeline = '1'")
    await archived.commit(100)
    await archived.value("SELECT pg_switch_wal()")

    await eventually("the second restore is archived", is_all_archived)
    assert await archived.numbers() == [1, 2, 3, 100]
