"""PostgreSQL and RabbitMQ for the tests, once for a whole run and all of its workers.

A keeper process, `python -m tests.support.infrastructure <run>`, runs both servers and hands out environments: a
database with every role and schema, and a virtual host. Each worker holds a connection to it. When the last one is
gone, however it went, the keeper stops the servers and removes their files.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import itertools
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any, Self

from deploy.local.postgres import SUPERUSER, Postgres
from deploy.local.rabbitmq import RabbitMQ, find_server, urls_of_services
from deploy.local.services import DATABASE, OWNERS, Secrets
from libs.runtime.supervision import Supervisor
from tests.support.ports import free_ports

START_SECONDS = 90.0
GRACE_SECONDS = 1.0
TEMPLATE = "migrated"
MOST_VHOSTS_AT_ONCE = 32
"""Virtual hosts made by one call of `rabbitmqctl`, which takes a second of processor time; the first makes few."""


class Environment:
    """A database and a virtual host that no other test uses. Each may be made when its URL is first asked for."""

    def __init__(
        self,
        database: str,
        database_urls: Mapping[str, str] | Callable[[], Mapping[str, str]],
        amqp_url: str | Callable[[], str],
        secrets: Secrets,
        cluster: Callable[[], Path] | None = None,
    ) -> None:
        self.database = database
        self.secrets = secrets
        self._database_urls = database_urls
        self._amqp_url = amqp_url
        self._cluster = cluster

    @cached_property
    def database_urls(self) -> Mapping[str, str]:
        """By role; "postgres" is the superuser."""
        urls = self._database_urls
        return urls() if callable(urls) else urls

    @cached_property
    def amqp_url(self) -> str:
        url = self._amqp_url
        return url() if callable(url) else url

    @cached_property
    def amqp_urls(self) -> Mapping[str, str]:
        """Each service's own, with its user. `amqp_url` is the administrator's, who here may also name others as the
        sender of a message.
        """
        return urls_of_services(self.amqp_url, self.secrets.amqp_passwords)

    @property
    def cluster(self) -> Path:
        """Data of a stopped PostgreSQL server with these secrets and every table, to be copied; see `new_cluster`."""
        assert self._cluster is not None, "an environment of a test run"
        return self._cluster()

    def with_urls(
        self, *, database_urls: Mapping[str, str] | None = None, amqp_url: str | None = None
    ) -> Environment:
        """The same, with other servers or by another way; what it takes from here is made when it is asked for."""
        return Environment(
            self.database,
            database_urls or (lambda: self.database_urls),
            amqp_url or (lambda: self.amqp_url),
            self.secrets,
            self._cluster,
        )


def environment_urls(postgres: Postgres, secrets: Secrets, database: str) -> dict[str, str]:
    urls = {
        role: postgres.url(role, password, database)
        for role, password in secrets.role_passwords.items()
    }
    return {SUPERUSER: postgres.url(SUPERUSER, secrets.superuser_password, database)} | urls


def migrate(database_urls: Mapping[str, str]) -> None:
    """Run every service's migrations, as `make migrate` does."""
    urls = {
        f"BANKSIDE_{prefix}_DATABASE_URL": database_urls[role] for role, prefix in OWNERS.items()
    }
    done = subprocess.run(
        [sys.executable, "-m", "libs.persistence.migrations"],
        env=os.environ | urls,
        capture_output=True,
        text=True,
        timeout=START_SECONDS,
        check=False,
    )
    if done.returncode != 0:
        raise RuntimeError(f"migrations failed: {done.stdout}{done.stderr}")


def new_postgres(home: Path, secrets: Secrets) -> Postgres:
    """A server for tests: it may be killed without losing anything, but the machine may not."""
    return Postgres(home, free_ports(1)[0], secrets.superuser_password, durable=False)


async def new_cluster(postgres: Postgres, secrets: Secrets) -> Path:
    """Make the server's data: `DATABASE` with every role, schema and table. It does not run afterwards."""
    await asyncio.to_thread(postgres.initialise)
    async with Supervisor() as supervisor:
        supervisor.start(postgres.child(postgres.home / "postgres.log"))
        await supervisor.until_ready(["postgres"], START_SECONDS)
        await postgres.create_database(DATABASE)
        await asyncio.to_thread(postgres.create_schemas, DATABASE, secrets.schema_passwords())
        await asyncio.to_thread(migrate, environment_urls(postgres, secrets, DATABASE))
    return postgres.data


def new_rabbitmq(home: Path, secrets: Secrets) -> RabbitMQ:
    server = find_server()
    if server is None:
        raise RuntimeError("RabbitMQ is not installed: run `make up` once, or install it.")
    port, distribution_port, epmd_port = free_ports(3)
    return RabbitMQ(
        server,
        home,
        port,
        distribution_port,
        epmd_port,
        name=f"bankside_tests_{port}",
        password=secrets.rabbitmq_password,
        passwords=secrets.amqp_passwords,
        cookie=secrets.erlang_cookie,
        administrator_tags=("administrator", "impersonator"),
    )


def _address(run: str) -> str:
    """A socket without a file, so that none is left behind."""
    return f"\0bankside-tests-{run}"


class _Keeper:
    """Runs the servers and answers requests, one at a time."""

    def __init__(self, home: Path) -> None:
        self._home = home
        self._secrets = Secrets.generate()
        self._postgres = new_postgres(home / "postgres", self._secrets)
        self._rabbitmq = new_rabbitmq(home / "rabbitmq", self._secrets)
        self._started: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._one_at_a_time = asyncio.Lock()
        self._connections = 0
        self._changed = asyncio.Event()
        self._made = 0
        self._vhosts: list[str] = []
        self._vhosts_at_once = MOST_VHOSTS_AT_ONCE // 8
        self._vhost_numbers = itertools.count(1)
        self._migrated = False
        self._cluster: Path | None = None

    async def run(self, listener: socket.socket) -> None:
        server = await asyncio.start_unix_server(self._on_connection, sock=listener)
        async with server:
            try:
                async with Supervisor() as supervisor:
                    await self._start(supervisor)
                    self._started.set_result(None)
                    await self._until_deserted()
                    server.close()
            except Exception as error:
                if self._started.done():
                    raise
                self._started.set_exception(error)
                await self._until_deserted()

    async def _start(self, supervisor: Supervisor) -> None:
        home = self._home
        self._rabbitmq.prepare()
        for spec in self._rabbitmq.children(home / "epmd.log", home / "rabbitmq.log"):
            supervisor.start(spec)
        await asyncio.to_thread(self._postgres.initialise)
        supervisor.start(self._postgres.child(home / "postgres.log"))
        await supervisor.until_ready(["postgres", "rabbitmq"], START_SECONDS)

    async def _until_deserted(self) -> None:
        """Return when nobody has been connected for a moment; whoever started us has longer to come."""
        patience = START_SECONDS
        while True:
            self._changed.clear()
            try:
                async with asyncio.timeout(None if self._connections else patience):
                    await self._changed.wait()
            except TimeoutError:
                return
            patience = GRACE_SECONDS

    async def _on_connection(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        self._connections += 1
        self._changed.set()
        try:
            while line := await reader.readline():
                answer = await self._answer(json.loads(line))
                writer.write(json.dumps(answer).encode() + b"\n")
                await writer.drain()
        except ConnectionError:
            pass  # a worker that was killed: the count below is what matters
        finally:
            self._connections -= 1
            self._changed.set()
            writer.close()

    async def _answer(self, request: dict[str, Any]) -> dict[str, Any]:
        try:
            await asyncio.shield(self._started)
            async with self._one_at_a_time:
                match request["do"]:
                    case "name":
                        self._made += 1
                        return {"name": f"test_{self._made}", "secrets": self._secrets.to_json()}
                    case "make database":
                        return await self._make_database(
                            request["name"], migrated=request["migrated"]
                        )
                    case "make vhost":
                        return {"amqp_url": self._rabbitmq.url(await self._next_vhost())}
                    case "make cluster":
                        return {"cluster": str(await self._copied_cluster())}
                    case "drop database":
                        await self._postgres.drop_database(request["name"])
                        return {}
                    case unknown:
                        raise ValueError(unknown)
        except Exception as error:  # the worker's test has to fail, not the keeper
            return {"error": f"{type(error).__name__}: {error}"}

    async def _make_database(self, name: str, *, migrated: bool) -> dict[str, Any]:
        if migrated and not self._migrated:
            await self._create_database(TEMPLATE, None)
            await asyncio.to_thread(migrate, self._urls(TEMPLATE))
            self._migrated = True
        await self._create_database(name, TEMPLATE if migrated else None)
        return {"database_urls": self._urls(name)}

    async def _copied_cluster(self) -> Path:
        """Once for the run: migrations take five seconds of processor time, a copy of what they made almost none."""
        if self._cluster is None:
            postgres = new_postgres(self._home / "copied", self._secrets)
            self._cluster = await new_cluster(postgres, self._secrets)
        return self._cluster

    async def _next_vhost(self) -> str:
        if not self._vhosts:
            names = [f"test_{next(self._vhost_numbers)}" for _ in range(self._vhosts_at_once)]
            self._vhosts_at_once = min(MOST_VHOSTS_AT_ONCE, 2 * self._vhosts_at_once)
            await self._rabbitmq.create_vhosts(*names)
            self._vhosts.extend(names)
        return self._vhosts.pop()

    async def _create_database(self, name: str, template: str | None) -> None:
        await self._postgres.create_database(name, template)
        passwords = self._secrets.schema_passwords()
        await asyncio.to_thread(self._postgres.create_schemas, name, passwords)

    def _urls(self, database: str) -> dict[str, str]:
        return environment_urls(self._postgres, self._secrets, database)


class Infrastructure:
    """A worker's connection to the keeper of its test run, which it starts when there is none."""

    def __init__(self, run: str) -> None:
        self._socket = self._connect(run)
        self._file = self._socket.makefile("rwb")

    def _connect(self, run: str) -> socket.socket:
        deadline = time.monotonic() + START_SECONDS
        started = False
        while True:
            connection = socket.socket(socket.AF_UNIX)
            try:
                connection.connect(_address(run))
            except ConnectionRefusedError:
                connection.close()
                if not started:
                    _start_keeper(run)
                    started = True
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.05)
            else:
                connection.settimeout(START_SECONDS)
                return connection

    def create(self, *, migrated: bool = True) -> Environment:
        """A new environment; `migrated`: with the tables of all services."""
        named = self._ask({"do": "name"})
        name: str = named["name"]

        def make_database() -> Mapping[str, str]:
            made = self._ask({"do": "make database", "name": name, "migrated": migrated})
            urls: Mapping[str, str] = made["database_urls"]
            return urls

        def make_vhost() -> str:
            return str(self._ask({"do": "make vhost"})["amqp_url"])

        def make_cluster() -> Path:
            return Path(self._ask({"do": "make cluster"})["cluster"])

        secrets = Secrets.from_json(named["secrets"])
        return Environment(name, make_database, make_vhost, secrets, make_cluster)

    def drop(self, environment: Environment) -> None:
        """Drop its database, if it was made. A virtual host stays until the server ends: dropping it takes a second."""
        if "database_urls" in vars(environment):
            self._ask({"do": "drop database", "name": environment.database})

    def _ask(self, request: dict[str, Any]) -> dict[str, Any]:
        self._file.write(json.dumps(request).encode() + b"\n")
        self._file.flush()
        line = self._file.readline()
        if not line:
            raise RuntimeError("the keeper of the test servers died")
        answer: dict[str, Any] = json.loads(line)
        if "error" in answer:
            raise RuntimeError(answer["error"])
        return answer

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()
        self._socket.close()


def _start_keeper(run: str) -> None:
    """In a session of its own: Ctrl-C at the terminal is for the tests, and the keeper cleans up after them."""
    null = os.open(os.devnull, os.O_RDWR)
    try:
        os.posix_spawn(
            sys.executable,
            [sys.executable, "-m", "tests.support.infrastructure", run],
            os.environ,
            file_actions=[(os.POSIX_SPAWN_DUP2, null, 0), (os.POSIX_SPAWN_DUP2, null, 1)],
            setsid=True,
        )
    finally:
        os.close(null)


async def _keep(run: str) -> None:
    listener = socket.socket(socket.AF_UNIX)
    try:
        listener.bind(_address(run))
    except OSError as error:
        if error.errno == errno.EADDRINUSE:  # another worker was quicker: its keeper is the one
            listener.close()
            return
        raise
    home = Path(tempfile.mkdtemp(prefix="bankside-tests-"))
    home.chmod(0o711)  # PostgreSQL may run as another user than we do
    try:
        keeper = asyncio.create_task(_Keeper(home).run(listener), name="keeper")
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, keeper.cancel)
        await keeper
    finally:
        shutil.rmtree(home)


if __name__ == "__main__":
    with contextlib.suppress(asyncio.CancelledError):
        asyncio.run(_keep(sys.argv[1]))
