"""A replica of onboarding whose person update leaves traces in tables: `python -m tests.integration.replica`.

Made to be killed. The handler records each drive, ends its process where the person is `DEADLY`, waits while `gate` is
closed, raises the error that `ending` names if it names one, and else has its one effect.
"""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from pydantic import SecretStr
from sqlalchemy import text

from libs.contracts.customers import UpdatePerson
from libs.contracts.errors import Unavailable
from libs.contracts.onboarding_operations import UPDATE_PERSON
from libs.contracts.result import Result
from libs.contracts.table import operations_of
from libs.handling.acceptance import Arriving
from libs.handling.commands import Drive, run_commands
from libs.handling.parking import NeedsOperator
from libs.messaging.broker import Broker
from libs.persistence.async_engine import AsyncConnection
from libs.persistence.engine import open_database
from libs.runtime.process import Process, run
from libs.runtime.service_settings import CommandSettings
from libs.runtime.settings import settings_of

TRACES = (
    "CREATE TABLE gate (open boolean NOT NULL)",
    "INSERT INTO gate VALUES (true)",
    "CREATE TABLE ending (error text)",
    "INSERT INTO ending VALUES (NULL)",
    "CREATE TABLE drives (n serial, command_id uuid, attempt int, pid int)",
    "CREATE TABLE effects (n serial, command_id uuid, person_id text)",
)
ENDINGS: dict[str, Exception] = {
    "unavailable": Unavailable(),
    "fault": AssertionError("of the test"),
    "needs_operator": NeedsOperator("The test decides."),
}
DEADLY = "deadly"
BROKER_WAIT_SECONDS = 10.0
POLL_SECONDS = 0.1


class Settings(CommandSettings):
    service = "onboarding"
    model_config = settings_of("ONBOARDING")

    gateway_keys: SecretStr
    reconciliation_keys: SecretStr


async def by_person(_connection: AsyncConnection, arriving: Arriving) -> str:
    return str(arriving.body["person_id"])


async def update_person(drive: Drive, command: UpdatePerson) -> Result:
    async with drive.transaction() as connection:
        await connection.execute(
            text("INSERT INTO drives (command_id, attempt, pid) VALUES (:id, :attempt, :pid)"),
            {"id": drive.command_id, "attempt": drive.attempt, "pid": os.getpid()},
        )
    if command.person_id == DEADLY:
        os.kill(os.getpid(), signal.SIGKILL)
    while not await _is_open(drive):
        await asyncio.sleep(POLL_SECONDS)
    async with drive.database.transaction() as connection:
        error = (await connection.execute(text("SELECT error FROM ending"))).scalar_one()
    if error is not None:
        raise ENDINGS[error]
    async with drive.transaction() as connection:
        await connection.execute(
            text(
                "INSERT INTO effects (command_id, person_id)"
                " SELECT :id, :person WHERE NOT EXISTS (SELECT 1 FROM effects WHERE command_id = :id)"
            ),
            {"id": drive.command_id, "person": command.person_id},
        )
    return Result()


async def _is_open(drive: Drive) -> bool:
    async with drive.database.transaction() as connection:
        return bool((await connection.execute(text("SELECT open FROM gate"))).scalar_one())


async def _unused(_drive: Drive, _command: object) -> Result:
    raise AssertionError("this handler is not used")


@asynccontextmanager
async def serve(settings: Settings, process: Process) -> AsyncIterator[None]:
    broker = Broker(settings.amqp_url.get_secret_value(), process.service)
    database = open_database(settings.database_url.get_secret_value(), process.service)
    process.readiness.add("broker", broker.ping)
    handlers = {row.name: _unused for row in operations_of("onboarding") if not row.is_query}
    try:
        async with (
            broker.open(),
            run_commands(
                process,
                settings.message_sealer(),
                broker,
                database,
                {**handlers, UPDATE_PERSON.name: update_person},
                by_person,
                lease_seconds=settings.lease_seconds,
            ),
        ):
            await broker.start(wait_seconds=BROKER_WAIT_SECONDS)
            yield
    finally:
        await database.close()


if __name__ == "__main__":
    run(Settings, serve)
