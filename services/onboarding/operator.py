"""`bankside sagas …`: what is not finished, and what could not be taken back."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Annotated, TypeVar
from uuid import UUID

from cyclopts import App, Parameter
from rich.markup import escape
from sqlalchemy.exc import ArgumentError
from sqlalchemy.ext.asyncio import AsyncConnection

from libs.client.mistakes import OperatorMistake
from libs.client.output import age, console, print_json
from libs.persistence.engine import is_away, open_database
from services.onboarding.repository import open_commands, steps
from services.onboarding.repository.open_commands import OpenCommand
from services.onboarding.repository.steps import RefusedCompensation

URL = "BANKSIDE_ONBOARDING_DATABASE_URL"
MAX_SHOWN = 1000

T = TypeVar("T")
Flag = Annotated[bool, Parameter(negative=())]

app = App(name="sagas", help="Commands of onboarding that are not finished, compensations refused.")


@app.command(name="list")
def list_sagas(*, refused: Flag = False, limit: int = 50, json: Flag = False) -> int:
    """List unfinished commands, the oldest first, and refused compensations, the newest first.

    Args:
        refused: Only the compensations that a provider refused; until somebody has seen to them, providers disagree.
        limit: Show at most so many of each.
        json: Print one JSON document.
    """
    if not 1 <= limit <= MAX_SHOWN:
        raise OperatorMistake(f"--limit is 1 to {MAX_SHOWN}.")
    unfinished, compensations = asyncio.run(
        _with_database(lambda connection: _look(connection, limit))
    )
    if refused:
        unfinished = []
    if json:
        print_json(
            {
                "unfinished": [asdict(command) for command in unfinished],
                "refused_compensations": [asdict(step) for step in compensations],
            }
        )
        return 0
    if not refused:
        _show_unfinished(unfinished)
    _show_compensations(compensations)
    return 0


@app.command
def settle(saga_id: UUID, step: str, *, json: Flag = False) -> int:
    """Say that a refused compensation has been seen to: it is listed no longer, and purged in time.

    Args:
        saga_id: As listed.
        step: As listed.
        json: Print one JSON document.
    """
    if not asyncio.run(_with_database(lambda connection: steps.settle(connection, saga_id, step))):
        raise OperatorMistake(f"There is no refused compensation {saga_id} {step} to see to.")
    if json:
        print_json({"saga_id": saga_id, "step": step, "settled": True})
    else:
        console().print(f"Settled: {saga_id}  {step}")
    return 0


async def _look(
    connection: AsyncConnection, limit: int
) -> tuple[list[OpenCommand], list[RefusedCompensation]]:
    return (
        await open_commands.oldest(connection, limit),
        await steps.refused_compensations(connection, limit),
    )


async def _with_database(work: Callable[[AsyncConnection], Awaitable[T]]) -> T:
    """What the work gives, in one transaction.

    Raises:
        OperatorMistake: there is no database to work in.
    """
    url = os.environ.get(URL)
    if not url:
        raise OperatorMistake(f"Set {URL}, or start the stack (make up).")
    try:
        database = open_database(url, "operator", pool_size=1)
    except ArgumentError:
        raise OperatorMistake(f"{URL} is not the URL of a database.") from None
    try:
        async with database.transaction() as connection:
            return await work(connection)
    except Exception as error:
        if not is_away(error):
            raise
        raise OperatorMistake("Onboarding's database cannot be reached.") from error
    finally:
        await database.close()


def _show_unfinished(commands: list[OpenCommand]) -> None:
    out, now = console(), datetime.now(UTC)
    out.print(f"[bold]Unfinished commands[/]: {len(commands) or 'none'}")
    for command in commands:
        out.print(f"{command.command_id}  {command.operation}  {command.ordering_key or ''}")
        error = command.last_error or "none"
        waited = age(command.accepted_at, now)
        out.print(f"    for {waited}, attempts {command.attempts}, last error {error}")


def _show_compensations(compensations: list[RefusedCompensation]) -> None:
    out, now = console(), datetime.now(UTC)
    out.print(f"[bold]Refused compensations[/]: {len(compensations) or 'none'}")
    for step in compensations:
        out.print(f"{step.saga_id}  {step.operation}  {step.tenant}/{step.customer_id}")
        refusal = f"[red]{step.refusal_status} {escape(step.refusal_code)}[/]"
        out.print(f"    {step.step} refused with {refusal}, {age(step.refused_at, now)} ago")
