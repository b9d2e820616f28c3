"""`bankside sagas …`: what is not finished, and what could not be taken back."""

from __future__ import annotations

from dataclasses import asdict
from datetime import UTC, datetime
from functools import partial
from typing import Annotated
from uuid import UUID

from cyclopts import App, Parameter
from rich.markup import escape

from libs.client.database import with_database
from libs.client.mistakes import OperatorMistake
from libs.client.output import age, console, print_json
from libs.persistence.engine import Database
from services.onboarding.repository import open_commands, steps
from services.onboarding.repository.open_commands import OpenCommand
from services.onboarding.repository.steps import RefusedCompensation

SERVICE = "onboarding"
MAX_SHOWN = 1000

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
    unfinished, compensations = with_database(SERVICE, partial(_look, limit=limit))
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

    async def work(database: Database) -> bool:
        async with database.transaction() as connection:
            return await steps.settle(connection, saga_id, step)

    if not with_database(SERVICE, work):
        raise OperatorMistake(f"There is no refused compensation {saga_id} {step} to see to.")
    if json:
        print_json({"saga_id": saga_id, "step": step, "settled": True})
    else:
        console().print(f"Settled: {saga_id}  {step}")
    return 0


async def _look(
    database: Database, limit: int
) -> tuple[list[OpenCommand], list[RefusedCompensation]]:
    async with database.transaction() as connection:
        return (
            await open_commands.oldest(connection, limit),
            await steps.refused_compensations(connection, limit),
        )


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
