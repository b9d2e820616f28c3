"""`bankside sagas …`: what is not finished, what could not be taken back, steps of unknown outcome."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from functools import partial
from typing import Annotated, Any
from uuid import UUID

from cyclopts import App, Parameter
from rich.markup import escape
from sqlalchemy.ext.asyncio import AsyncConnection

from libs.cli.audit import record
from libs.cli.database import with_database
from libs.cli.decisions import Flag, operator_of, reason_of
from libs.cli.output import age, console, print_json
from libs.client.errors import OperatorError
from libs.contracts.errors import InvalidState, NotFound
from libs.contracts.exact_json import NotExactJson, decode
from libs.contracts.onboarding_operations import ONBOARD_CUSTOMER
from libs.contracts.principal import Family, Principal
from libs.persistence.engine import Database
from services.onboarding.repository import open_commands, step_cases
from services.onboarding.repository.open_commands import OpenCommand
from services.onboarding.repository.step_cases import (
    RefusedCompensation,
    Resolution,
    UnknownStep,
)
from services.onboarding.resolving import Resolved, resolve_step

SERVICE = "onboarding"
MAX_SHOWN = 1000


app = App(name="sagas", help="Commands of onboarding that are not finished, compensations refused.")


@app.command(name="list")
def list_sagas(
    *, refused: Flag = False, unknown: Flag = False, limit: int = 50, json: Flag = False
) -> int:
    """List unfinished commands and steps of unknown outcome, the oldest first; refused compensations, the newest first.

    Args:
        refused: Only the compensations that a provider refused; until an operator has seen to them, providers disagree.
        unknown: Only the steps that were sent and of which it is not known whether they happened.
        limit: Show at most so many of each.
        json: Print one JSON document.
    """
    if not 1 <= limit <= MAX_SHOWN:
        raise OperatorError(f"--limit is 1 to {MAX_SHOWN}.")
    found = with_database(SERVICE, partial(_look, limit=limit))
    shown = found.only(refused=refused, unknown=unknown)
    if json:
        print_json(
            {
                "unfinished": [asdict(command) for command in shown.unfinished],
                "unknown_steps": [asdict(step) for step in shown.unknown],
                "refused_compensations": [asdict(step) for step in shown.compensations],
            }
        )
        return 0
    everything = not (refused or unknown)
    if everything:
        _show_unfinished(shown.unfinished)
    if unknown or everything:
        _show_unknown(shown.unknown)
    if refused or everything:
        _show_compensations(shown.compensations)
    return 0


@app.command
def resolve(
    saga_id: UUID,
    step: str,
    /,
    *,
    decision: Annotated[Resolution, Parameter(name="--as")],
    reason: str,
    result: str | None = None,
    by: str | None = None,
    json: Flag = False,
) -> int:
    """Say what became of a step of unknown outcome, after the provider was asked by other means.

    The decision is kept with the step. Its command is driven again and acts on it.

    Args:
        saga_id: As listed.
        step: As listed.
        decision: absent: the provider holds nothing of it, so that it is sent as if for the first time. done: it
            happened. refused: the provider refused it.
        reason: Whence this is known.
        result: With done, the provider's answer to the step as a JSON object.
        by: Who decides; without, the name of the user of this terminal.
        json: Print one JSON document.
    """
    operator, why = operator_of(by), reason_of(reason)
    answer = _decoded(result)

    async def work(database: Database) -> Resolved:
        principal = Principal(
            tenant="",
            tenant_name="",
            family=Family.OPERATOR,
            subscription_key="",
            operator=operator,
        )
        return await resolve_step(
            database, principal, saga_id, step, decision, reason=why, result=answer
        )

    try:
        resolved = with_database(SERVICE, work)
    except (NotFound, InvalidState) as error:
        raise OperatorError(error.detail) from None
    if json:
        print_json({**asdict(resolved.step), "resolution": decision, "is_open": resolved.is_open})
        return 0
    out, command_id = console(), resolved.step.command_id
    out.print(f"Resolved as {decision}: {saga_id}  {escape(step)}")
    if resolved.is_open:
        out.print(
            "Its command is driven again now. One that is parked goes on by:"
            f" bankside commands retry {command_id}"
        )
    else:
        out.print(f"Its command {command_id} is not open any more: the decision is only recorded.")
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
            settled = await step_cases.settle(connection, saga_id, step)
            if settled:
                await record(connection, "sagas.settle", saga_id=str(saga_id), step=step)
            return settled

    if not with_database(SERVICE, work):
        raise OperatorError(f"There is no refused compensation {saga_id} {step} to see to.")
    if json:
        print_json({"saga_id": saga_id, "step": step, "settled": True})
    else:
        console().print(f"Settled: {saga_id}  {step}")
    return 0


def _decoded(result: str | None) -> Any:
    if result is None:
        return None
    try:
        return decode(result)
    except NotExactJson as error:
        raise OperatorError(f"--result is not JSON: {error}.") from None


@dataclass(frozen=True, slots=True)
class _Found:
    unfinished: list[OpenCommand]
    unknown: list[UnknownStep]
    compensations: list[RefusedCompensation]

    def only(self, *, refused: bool, unknown: bool) -> _Found:
        """Those kinds that are asked for; all of them when none is."""
        if not (refused or unknown):
            return self
        return _Found([], self.unknown if unknown else [], self.compensations if refused else [])


async def _look(database: Database, limit: int) -> _Found:
    async with database.transaction() as connection:
        return _Found(
            await open_commands.oldest(connection, limit),
            await step_cases.unknown(connection, limit),
            await step_cases.refused_compensations(connection, limit),
        )


def _show_unfinished(commands: list[OpenCommand]) -> None:
    out, now = console(), datetime.now(UTC)
    out.print(f"[bold]Unfinished commands[/]: {len(commands) or 'none'}")
    for command in commands:
        out.print(f"{command.command_id}  {command.operation}  {command.ordering_key or ''}")
        error = command.last_error or "none"
        waited = age(command.accepted_at, now)
        out.print(f"    for {waited}, attempts {command.attempts}, last error {error}")


def _show_unknown(steps: list[UnknownStep]) -> None:
    out, now = console(), datetime.now(UTC)
    out.print(f"[bold]Steps of unknown outcome[/]: {len(steps) or 'none'}")
    for step in steps:
        out.print(
            f"{step.saga_id}  [bold]{step.step}[/]  {step.operation}  {step.tenant}/{step.customer_id}"
        )
        out.print(
            f"    first sent {step.first_sent_at:%Y-%m-%d %H:%M:%S}Z, {age(step.first_sent_at, now)} ago,"
            f" last asked {step.last_asked_at:%Y-%m-%d %H:%M:%S}Z, command {step.command_id or '?'}"
        )


def _show_compensations(compensations: list[RefusedCompensation]) -> None:
    out, now = console(), datetime.now(UTC)
    out.print(f"[bold]Refused compensations[/]: {len(compensations) or 'none'}")
    for step in compensations:
        out.print(f"{step.saga_id}  {step.operation}  {step.tenant}/{step.customer_id}")
        refusal = f"[red]{step.refusal_reason} ({escape(step.refusal_code)})[/]"
        out.print(f"    {step.step} refused with {refusal}, {age(step.refused_at, now)} ago")


async def why_not_abandoned(
    connection: AsyncConnection, operation: str, command_id: UUID
) -> str | None:
    """See `libs.cli.commands.WhyNotAbandoned`: a customer that is pending would stay so, and keep its EIN."""
    if operation != ONBOARD_CUSTOMER.name:
        return None
    if not await open_commands.has_pending_customer(connection, command_id):
        return None
    return (
        "Its customer is pending, and would stay so: resolve its steps (`bankside sagas list --unknown`),"
        f" then `bankside commands retry {command_id}`."
    )
