"""`bankside sagas …`: what is not finished, what could not be taken back, steps of unknown outcome."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated, Any
from uuid import UUID

from cyclopts import App, Parameter

from libs.cli.decisions import Flag, is_agreed, reason_of
from libs.cli.output import age, console, escape, print_json
from libs.cli.pages import count_of, gathered_of, list_of, tell_unreachable
from libs.client.errors import OperatorError
from libs.client.operator_client import ask
from libs.contracts.errors import InvalidState, NotFound
from libs.contracts.exact_json import NotExactJson, decode
from libs.contracts.operating import saga_steps as contract
from libs.contracts.operating.commands import LIST_COMMANDS, ListCommandsOf, OpenCommand
from libs.contracts.operating.pages import Order
from libs.contracts.operating.saga_steps import SagaStep, StepKind, StepResolution

COMMAND_MEMBERS = {
    "command_id",
    "operation",
    "ordering_key",
    "accepted_at",
    "attempts",
    "last_error",
    "next_attempt_at",
}
STEP_MEMBERS = {"saga_id", "step", "tenant", "customer_id", "operation"}
UNKNOWN_MEMBERS = STEP_MEMBERS | {"command_id", "first_sent_at", "last_asked_at"}
REFUSED_MEMBERS = STEP_MEMBERS | {"refusal_reason", "refusal_code"}

QUESTIONS = {
    StepResolution.ABSENT: "Record that the provider holds nothing of it, and have it sent as if for the first time?",
    StepResolution.DONE: "Record that it happened, with this answer of the provider?",
    StepResolution.REFUSED: "Record that the provider refused it?",
}

app = App(name="sagas", help="Commands of onboarding that are not finished, compensations refused.")


@app.command(name="list")
def list_sagas(
    *, refused: Flag = False, unknown: Flag = False, limit: int = 50, json: Flag = False
) -> int:
    """List unfinished commands and steps of unknown outcome, the oldest first; refused compensations, the newest first.

    Such as `bankside sagas list --refused`.

    Args:
        refused: Only the compensations that a provider refused; until an operator has seen to them, providers disagree.
        unknown: Only the steps that were sent and of which it is not known whether they happened.
        limit: How many of each to show at most.
        json: Print one JSON document.
    """
    everything = not (refused or unknown)
    commands: list[OpenCommand] = []
    silent: list[str] = []
    steps: list[SagaStep] = []
    compensations: list[SagaStep] = []
    if everything:
        query = ListCommandsOf(service="onboarding", order=Order.OLDEST)
        commands, silent = gathered_of(LIST_COMMANDS, query, limit)
    if unknown or everything:
        steps = _steps(StepKind.UNKNOWN, Order.OLDEST, limit)
    if refused or everything:
        compensations = _steps(StepKind.REFUSED, Order.NEWEST, limit)
    if json:
        print_json(
            {
                "unfinished": [command.model_dump(include=COMMAND_MEMBERS) for command in commands],
                "unknown_steps": [step.model_dump(include=UNKNOWN_MEMBERS) for step in steps],
                "refused_compensations": [
                    step.model_dump(include=REFUSED_MEMBERS) | {"refused_at": step.recorded_at}
                    for step in compensations
                ],
            }
        )
        return tell_unreachable(silent)
    if everything:
        _show_unfinished(commands, limit)
    if unknown or everything:
        _show_unknown(steps, limit)
    if refused or everything:
        _show_compensations(compensations, limit)
    return tell_unreachable(silent)


@app.command
def resolve(
    saga_id: UUID,
    step: str,
    /,
    *,
    decision: Annotated[StepResolution, Parameter(name="--as")],
    reason: str,
    result: str | None = None,
    yes: Flag = False,
    json: Flag = False,
) -> int:
    """Say what became of a step of unknown outcome, after the provider was asked by other means.

    The decision is kept with the step. Its command is driven again and acts on it; until it has, another decision
    replaces this one. While the last send may still arrive at the provider, a step is neither absent nor refused:
    sending stops, and the answer says from when on to decide again.

    Such as `bankside sagas resolve SAGA_ID STEP --as absent --reason "the provider has no such customer"`.

    Args:
        saga_id: As listed.
        step: As listed.
        decision: absent: the provider holds nothing of it, so that it is sent as if for the first time. done: it
            happened. refused: the provider refused it.
        reason: Whence this is known.
        result: With done, the provider's answer to the step as a JSON object.
        yes: Do not ask.
        json: Print one JSON document; needs --yes.
    """
    why, answer = reason_of(reason), _decoded(result)
    if (decision is StepResolution.DONE) != (answer is not None):
        raise OperatorError("--result is given with --as done, and only then.")
    if answer is not None and not isinstance(answer, dict):
        raise OperatorError("--result is a JSON object.")
    if not is_agreed(f"{escape(step)} of {saga_id}: {QUESTIONS[decision]}", yes=yes, json=json):
        return 1
    try:
        resolved = ask(
            contract.RESOLVE_STEP,
            contract.ResolveStep(
                saga_id=str(saga_id), step=step, resolution=decision, reason=why, result=answer
            ),
        )
    except (NotFound, InvalidState) as refusal:
        raise OperatorError(refusal.detail) from None
    if json:
        print_json(resolved.model_dump())
        return 0
    out, command_id = console(), resolved.command_id
    out.print(f"Resolved as {decision}: {saga_id}  {escape(step)}")
    if resolved.is_open:
        out.print(
            "Its command is driven again now. One that is parked goes on by:"
            f" bankside commands retry {command_id} --reason TEXT"
        )
    else:
        out.print(
            f"Its command {command_id} is not open any more: the decision is only recorded.\n"
            "Of an update, providers may have the change, which Bankside does not have. Restore it there, or have the"
            " partner send the same change again: an update to the value that Bankside has sends nothing."
        )
    return 0


@app.command
def settle(saga_id: UUID, step: str, *, reason: str, yes: Flag = False, json: Flag = False) -> int:
    """Say that a refused compensation has been seen to: it is listed no longer, and purged in time.

    Such as `bankside sagas settle SAGA_ID STEP --reason "removed at the bank by hand"`.

    Args:
        saga_id: As listed.
        step: As listed.
        reason: What was done about it.
        yes: Do not ask.
        json: Print one JSON document; needs --yes.
    """
    why = reason_of(reason)
    question = f"{escape(step)} of {saga_id}: record that it has been seen to, for good?"
    if not is_agreed(question, yes=yes, json=json):
        return 1
    try:
        settled = ask(
            contract.SETTLE_STEP,
            contract.SettleStep(saga_id=str(saga_id), step=step, reason=why),
        )
    except NotFound as refusal:
        raise OperatorError(refusal.detail) from None
    if json:
        print_json(settled.model_dump())
    else:
        console().print(f"Settled: {saga_id}  {step}")
    return 0


def _steps(kind: StepKind, order: Order, limit: int) -> list[SagaStep]:
    return list_of(contract.LIST_STEPS, contract.ListSagaSteps(kind=kind, order=order), limit)


def _decoded(result: str | None) -> Any:
    if result is None:
        return None
    try:
        return decode(result)
    except NotExactJson as error:
        raise OperatorError(f"--result is not JSON: {error}.") from None


def _show_unfinished(commands: list[OpenCommand], limit: int) -> None:
    out, now = console(), datetime.now(UTC)
    out.print(f"[bold]Unfinished commands[/]: {count_of(commands, limit)}")
    for command in commands:
        out.print(f"{command.command_id}  {command.operation}  {command.ordering_key or ''}")
        error = command.last_error or "none"
        waited = age(command.accepted_at, now)
        out.print(f"    for {waited}, attempts {command.attempts}, last error {error}")


def _show_unknown(steps: list[SagaStep], limit: int) -> None:
    out, now = console(), datetime.now(UTC)
    out.print(f"[bold]Steps of unknown outcome[/]: {count_of(steps, limit)}")
    for step in steps:
        out.print(
            f"{step.saga_id}  [bold]{step.step}[/]  {step.operation}  {step.tenant}/{step.customer_id}"
        )
        out.print(
            f"    first sent {step.first_sent_at:%Y-%m-%d %H:%M:%S}Z, {age(step.first_sent_at, now)} ago,"
            f" last asked {step.last_asked_at:%Y-%m-%d %H:%M:%S}Z, command {step.command_id or '?'}"
        )


def _show_compensations(compensations: list[SagaStep], limit: int) -> None:
    out, now = console(), datetime.now(UTC)
    out.print(f"[bold]Refused compensations[/]: {count_of(compensations, limit)}")
    for step in compensations:
        out.print(f"{step.saga_id}  {step.operation}  {step.tenant}/{step.customer_id}")
        refusal = f"[red]{step.refusal_reason} ({escape(step.refusal_code or '')})[/]"
        out.print(f"    {step.step} refused with {refusal}, {age(step.recorded_at, now)} ago")
