"""A command that waits for news rests for minutes, and is driven at once when they come."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from libs.contracts.customers import UpdatePerson
from libs.contracts.result import Result
from libs.handling.awaiting import OutcomeAwaited
from libs.handling.commands import Drive
from libs.persistence import inbox_acceptance
from libs.persistence.async_engine import AsyncConnection
from libs.persistence.engine import Database
from tests.integration.gateway.desk import calling, until
from tests.integration.tables import execute, rows
from tests.integration.test_command_driving import envelope_of
from tests.integration.test_inbox import accepting
from tests.integration.test_parking import PATIENCE_SECONDS, serving, told
from tests.support.infrastructure import Environment


class Waiting:
    """The person update; it waits while there is no news, and these come as a drive ends if they are late."""

    def __init__(self, *, are_late: bool) -> None:
        self.are_late = are_late
        self.drives = 0

    async def __call__(self, drive: Drive, command: UpdatePerson) -> Result:
        self.drives += 1
        if self.are_late and self.drives > 1:
            return Result()
        raise OutcomeAwaited(self.is_awaited)

    async def is_awaited(self, _: AsyncConnection) -> bool:
        return not self.are_late


async def accept_after(environment: Environment, database: Database, attempts: int) -> None:
    """A command that was driven so often, and is due."""
    async with calling(environment) as service_client:
        command = replace(accepting(), body=bytes(envelope_of(service_client).body))
    async with database.transaction() as connection:
        await inbox_acceptance.accept(connection, command, None, lease=False)
    await execute(database, f"UPDATE inbox SET attempts = {attempts}")


async def test_a_command_that_waits_for_news_rests_up_to_ten_minutes(
    fresh_environment: Environment, database: Database
) -> None:
    await accept_after(fresh_environment, database, attempts=20)

    async def resting() -> Sequence[Any]:
        return await rows(
            database,
            "SELECT last_error, faults, extract(epoch FROM due_at - now()) AS seconds FROM inbox"
            " WHERE lease IS NULL AND attempts = 21",
        )

    async with serving(fresh_environment, Waiting(are_late=False)):
        [(error, faults, seconds)] = await until(resting)

    assert (error, faults) == ("outcome_pending", 0)
    assert 300 < seconds <= 600


async def test_a_command_whose_news_come_as_its_drive_ends_is_driven_again_at_once(
    fresh_environment: Environment, database: Database
) -> None:
    await accept_after(fresh_environment, database, attempts=20)
    service = Waiting(are_late=True)

    async def finished() -> Sequence[Any]:
        return await rows(database, "SELECT attempts FROM inbox WHERE finished_at IS NOT NULL")

    async with serving(fresh_environment, service):
        [(attempts,)] = await until(finished)

    assert (attempts, service.drives) == (22, 2)


async def test_the_caller_of_a_command_that_waits_for_news_is_told_that_it_is_pending(
    fresh_environment: Environment, database: Database
) -> None:
    async with serving(fresh_environment, Waiting(are_late=False)) as service_client:
        answer = await told(service_client, envelope_of(service_client, "p1", PATIENCE_SECONDS))

    assert answer == "outcome_pending"
