"""`python -m tests.support.keeper <descriptor>`: runs PostgreSQL and RabbitMQ for a test run, and makes databases and
virtual hosts for its workers.

The run's pytest and each worker hold a connection to it (`infrastructure`). When the last one is gone, however it went,
the keeper stops the servers and removes their files. `run_server` starts it.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import signal
import socket
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from deploy.local.services import DATABASE, Secrets
from deploy.rabbitmq.definitions import administrator_permissions, definitions
from libs.runtime.supervision import Supervisor
from tests.support.infrastructure import (
    FIRST_LIFE,
    START_SECONDS,
    copy_cluster,
    environment_urls,
    new_cluster,
    new_postgres,
    new_rabbitmq,
)
from tests.support.servers_folder import servers_folder

GRACE_SECONDS = 1.0
VHOSTS_AT_START = 80
"""Virtual hosts that RabbitMQ starts with, enough for a run: that takes half as long as to add them."""
VHOSTS_AT_ONCE = 32
"""Virtual hosts made by one call of `rabbitmqctl`, which takes seconds."""
VHOSTS_READY = 8
"""When fewer are left, more are made."""
ONE_NODE = "net_ticktime = 3600\n"
"""RabbitMQ looks after each virtual host every 4 ms for each second of it: with the 10 of our configuration, a hundred
take a tenth of a core.
"""
RARE_TICKS = ("-rabbit", "quorum_tick_interval", "60000")
"""Each quorum queue wakes after so many milliseconds to measure itself, also where no test uses it any more: with
RabbitMQ's 5000, the queues that thirty stacks leave behind take a fortieth of a core.
"""


class _Keeper:
    """Runs the servers and answers requests: those for databases one at a time, those for virtual hosts beside them."""

    def __init__(self, home: Path) -> None:
        self._home = home
        self._secrets = Secrets.generate()
        self._migrated = new_postgres(home / "migrated", self._secrets)
        self._postgres = new_postgres(home / "postgres", self._secrets)
        node = new_rabbitmq(home / "rabbitmq", self._secrets)
        self._rabbitmq = replace(node, erlang_arguments=RARE_TICKS)
        loop = asyncio.get_running_loop()
        self._started: dict[str, asyncio.Future[None]] = {
            server: loop.create_future() for server in ("postgres", "rabbitmq")
        }
        self._one_at_a_time = asyncio.Lock()
        self._connections = 0
        self._changed = asyncio.Event()
        self._made = 0
        self._vhosts: asyncio.Queue[str] = asyncio.Queue(VHOSTS_READY)
        self._stocking: asyncio.Task[None] | None = None

    async def run(self, listener: socket.socket) -> None:
        server = await asyncio.start_unix_server(self._on_connection, sock=listener)
        async with server:
            deserted = asyncio.create_task(self._until_deserted(), name="deserted")
            try:
                async with Supervisor() as supervisor:
                    await self._start(supervisor)
                    await deserted
                    server.close()
                    if self._stocking is not None:
                        self._stocking.cancel()
                        await asyncio.wait({self._stocking})
            except Exception as error:
                if all(started.done() for started in self._started.values()):
                    raise
                for started in self._started.values():
                    if not started.done():
                        started.set_exception(error)
                await deserted

    async def _start(self, supervisor: Supervisor) -> None:
        home = self._home
        self._rabbitmq.prepare()
        with (self._rabbitmq.home / "rabbitmq.conf").open("a") as configuration:
            configuration.write(ONE_NODE)
        _add_vhosts(self._rabbitmq.home / "definitions.json", _vhosts(0, VHOSTS_AT_START))
        for spec in self._rabbitmq.children(home / "epmd.log", home / "rabbitmq.log"):
            supervisor.start(spec)
        # Migrations take five seconds of processor time, a copy of what they made almost none.
        cluster = await new_cluster(self._migrated, self._secrets)
        await asyncio.to_thread(copy_cluster, cluster, self._postgres)
        supervisor.start(self._postgres.child(home / "postgres.log"))
        await supervisor.until_ready(["postgres"], START_SECONDS)
        connection = await self._postgres.connect(DATABASE)
        try:
            await connection.execute(FIRST_LIFE)
        finally:
            await connection.close()
        self._started["postgres"].set_result(None)
        await supervisor.until_ready(["rabbitmq"], START_SECONDS)
        self._started["rabbitmq"].set_result(None)

    async def _until_deserted(self) -> None:
        """Return when no process has been connected for a moment; the first has longer to come."""
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
            match request["do"]:
                case "name":
                    self._made += 1
                    return {"name": f"test_{self._made}", "secrets": self._secrets.to_json()}
                case "make vhost":
                    await asyncio.shield(self._started["rabbitmq"])
                    return {"amqp_url": self._rabbitmq.url(await self._next_vhost())}
                case _:
                    await asyncio.shield(self._started["postgres"])
                    async with self._one_at_a_time:
                        return await self._answer_of_postgres(request)
        except Exception as error:  # the worker's test has to fail, not the keeper
            return {"error": f"{type(error).__name__}: {error}"}

    async def _answer_of_postgres(self, request: dict[str, Any]) -> dict[str, Any]:
        match request["do"]:
            case "make database":
                return await self._make_database(request["name"], migrated=request["migrated"])
            case "find cluster":
                return {"cluster": str(self._migrated.data)}
            case "drop database":
                await self._postgres.drop_database(request["name"])
                return {}
            case unknown:
                raise ValueError(unknown)

    async def _make_database(self, name: str, *, migrated: bool) -> dict[str, Any]:
        await self._create_database(name, DATABASE if migrated else None)
        return {"database_urls": self._urls(name)}

    async def _next_vhost(self) -> str:
        if self._stocking is None:
            self._stocking = asyncio.create_task(self._stock_vhosts(), name="vhosts")
        getting = asyncio.create_task(self._vhosts.get(), name="vhost")
        await asyncio.wait({getting, self._stocking}, return_when=asyncio.FIRST_COMPLETED)
        if not getting.done():
            getting.cancel()
            self._stocking.result()  # raises what ended it
        return await getting

    async def _stock_vhosts(self) -> None:
        """Make virtual hosts before they are asked for, from the first request on: no test waits for `rabbitmqctl`."""
        made, names = VHOSTS_AT_START, _vhosts(0, VHOSTS_AT_START)
        while True:
            for name in names:
                await self._vhosts.put(name)
            names = _vhosts(made, VHOSTS_AT_ONCE)
            await self._rabbitmq.create_vhosts(*names)
            made += VHOSTS_AT_ONCE

    async def _create_database(self, name: str, template: str | None) -> None:
        await self._postgres.create_database(name, template)
        passwords = self._secrets.schema_passwords()
        await asyncio.to_thread(self._postgres.create_schemas, name, passwords)

    def _urls(self, database: str) -> dict[str, str]:
        return environment_urls(self._postgres, self._secrets, database)


def _vhosts(made: int, count: int) -> list[str]:
    """The names of the next ones."""
    return [f"test_{made + number}" for number in range(1, count + 1)]


def _add_vhosts(path: Path, names: Sequence[str]) -> None:
    """Add them to the definitions of a node that was not started yet."""
    document = json.loads(path.read_text())
    for kind, rows in definitions(names).items():
        document[kind] += rows
    document["permissions"] += administrator_permissions(names)
    path.write_text(json.dumps(document))


async def _keep(listener: socket.socket) -> None:
    with servers_folder() as home:
        keeper = asyncio.create_task(_Keeper(home).run(listener), name="keeper")
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, keeper.cancel)
        await keeper


if __name__ == "__main__":
    with contextlib.suppress(asyncio.CancelledError):
        asyncio.run(_keep(socket.socket(fileno=int(sys.argv[1]))))
