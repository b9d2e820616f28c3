"""The process that runs the stack: servers, migrations, then the services, until SIGTERM.

`python -m deploy.local supervise` is started by `up`, in the background; what it prints is `logs/supervisor.log`.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
import signal
import sys
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import urlsplit

from deploy.local import banks
from deploy.local.ports import LOOPBACK
from deploy.local.postgres import Postgres, PostgresError
from deploy.local.rabbitmq import RabbitMQ, RabbitMQError, find_server
from deploy.local.services import DATABASE, Service, admin_address, migration_settings, settings_of
from deploy.local.state import LocalState, Remembered
from libs.client.errors import OperatorError
from libs.runtime.probes import http_ready
from libs.runtime.processes import die_with_parent
from libs.runtime.supervision import Change, ChildSpec, NotReady, Supervisor

SERVER_SECONDS = 60.0
MIGRATION_SECONDS = 300.0


def own_postgres(state: LocalState, remembered: Remembered) -> Postgres:
    return Postgres(
        state.postgres_home(remembered),
        remembered.ports["postgres"],
        remembered.secrets.superuser_password,
    )


def own_rabbitmq(state: LocalState, remembered: Remembered, server: Path) -> RabbitMQ:
    return RabbitMQ(
        server,
        state.rabbitmq,
        remembered.ports["rabbitmq"],
        remembered.ports["rabbitmq_distribution"],
        remembered.ports["epmd"],
        name=f"bankside_{remembered.name}",
        password=remembered.secrets.rabbitmq_password,
        passwords=remembered.secrets.amqp_passwords,
        cookie=remembered.secrets.erlang_cookie,
    )


def runs_own_rabbitmq(remembered: Remembered, settings: Mapping[str, str]) -> bool:
    """Whether the broker is our node, rather than one that the operator named."""
    broker = urlsplit(settings["BANKSIDE_AMQP_URL"])
    return (broker.hostname, broker.port) == (LOOPBACK, remembered.ports["rabbitmq"])


def expected_children(remembered: Remembered, settings: Mapping[str, str]) -> list[str]:
    """The names of all that has to be ready, in the order in which it starts."""
    own_broker = ["epmd", "rabbitmq"] if runs_own_rabbitmq(remembered, settings) else []
    fake = [banks.PART] if banks.has_fake(settings) else []
    services = (service.name for service in banks.services_beside(settings))
    return [*own_broker, "postgres", *fake, *services]


def say(line: object) -> None:
    print(f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ} {line}", flush=True)


async def supervise(state: LocalState) -> None:
    """Run everything until SIGTERM or SIGINT. Raises OperatorError when it cannot be started at all."""
    remembered = state.remembered()
    if remembered is None:
        raise OperatorError("There is nothing to run yet: `make up` starts the stack.")
    settings = state.read_environment()
    stop = asyncio.Event()
    for signum in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(signum, stop.set)
    async with Supervisor(report=_report, state_path=state.supervisor) as supervisor:
        starting = asyncio.create_task(
            _start(supervisor, state, remembered, settings), name="start"
        )
        stopping = asyncio.create_task(stop.wait(), name="stop")
        await asyncio.wait({starting, stopping}, return_when=asyncio.FIRST_COMPLETED)
        if starting.done():
            starting.result()
        await stopping
        starting.cancel()
        await asyncio.wait({starting})
        say("stopping")
    say("stopped")


def _report(change: Change) -> None:
    say(change)


async def _start(
    supervisor: Supervisor,
    state: LocalState,
    remembered: Remembered,
    settings: Mapping[str, str],
) -> None:
    if runs_own_rabbitmq(remembered, settings):
        server = find_server()
        if server is None:
            raise OperatorError("RabbitMQ is not installed any more.")
        rabbitmq = own_rabbitmq(state, remembered, server)
        try:
            rabbitmq.prepare()
            for spec in rabbitmq.children(state.log("epmd"), state.log("rabbitmq")):
                supervisor.start(spec)
        except RabbitMQError as error:
            raise OperatorError(str(error)) from None
    try:
        await _start_database(supervisor, state, remembered)
    except PostgresError as error:
        raise OperatorError(f"PostgreSQL could not be set up: {error}.") from None
    revisions = _revisions(state)
    if not state.migrated.exists() or state.migrated.read_text() != revisions:
        await migrate(state, settings)
        state.write_private(state.migrated, revisions)
    # Services wait for the broker by themselves; it takes as long to start as they do.
    if banks.has_fake(settings):
        supervisor.start(
            banks.fake_child(
                settings, state.increase_fake, _inherited(), state.root, state.log(banks.PART)
            )
        )
    for service in banks.services_beside(settings):
        supervisor.start(_child(service, state, settings))


async def _start_database(
    supervisor: Supervisor, state: LocalState, remembered: Remembered
) -> None:
    postgres = own_postgres(state, remembered)
    if await asyncio.to_thread(postgres.initialise):
        say("postgres: made a new data directory")
        # They are of a database that is not there any more: another user runs this, or a container was made anew.
        state.migrated.unlink(missing_ok=True)
        state.credentials.unlink(missing_ok=True)
    supervisor.start(postgres.child(state.log("postgres")))
    try:
        await supervisor.until_ready(["postgres"], SERVER_SECONDS)
    except NotReady as error:
        raise OperatorError(f"PostgreSQL: {error}; see {state.log('postgres')}.") from None
    await postgres.create_database(DATABASE)
    passwords = remembered.secrets.schema_passwords()
    await asyncio.to_thread(postgres.create_schemas, DATABASE, passwords)


def _revisions(state: LocalState) -> str:
    """Tells whether there is anything to migrate, which is quicker than trying: a third of a warm start."""
    digest = hashlib.sha256()
    for path in sorted((state.root / "services").glob("*/migrations/versions/*.py")):
        digest.update(f"{path.relative_to(state.root)}\0".encode() + path.read_bytes())
    return digest.hexdigest()


async def migrate(state: LocalState, settings: Mapping[str, str]) -> None:
    """Bring all schemas to their newest revision. Raises OperatorError."""
    if not settings:
        raise OperatorError("There is no database to migrate yet: `make up` makes it.")
    log = state.log("migrate")
    with log.open("ab") as output:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "libs.persistence.migrations"),
            env={**_inherited(), **migration_settings(settings)},
            cwd=state.root,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            preexec_fn=die_with_parent(signal.SIGKILL),
        )
    try:
        async with asyncio.timeout(MIGRATION_SECONDS):
            code = await process.wait()
    except TimeoutError:
        raise OperatorError(f"The migrations took longer than {MIGRATION_SECONDS:g} s.") from None
    finally:
        if process.returncode is None:
            process.kill()
    if code != 0:
        lines = log.read_text(errors="replace").strip().splitlines()
        raise OperatorError(f"The migrations failed: {lines[-1] if lines else f'exit code {code}'}")
    say("migrate: all schemas are up to date")


def _child(service: Service, state: LocalState, settings: Mapping[str, str]) -> ChildSpec:
    return ChildSpec(
        service.name,
        (sys.executable, "-m", f"services.{service.name}"),
        env=_inherited() | settings_of(service, settings),
        ready=http_ready(*admin_address(service, settings)),
        log_path=state.log(service.name),
        cwd=state.root,
        stop_seconds=service.stop_seconds,
    )


def _inherited() -> dict[str, str]:
    """Our own environment without settings: children are told theirs."""
    return {name: value for name, value in os.environ.items() if not name.startswith("BANKSIDE_")}
