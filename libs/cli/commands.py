"""`bankside commands`: what services have accepted and not finished, and what to do about commands that are parked."""

from __future__ import annotations

from datetime import UTC, datetime
from uuid import UUID

from cyclopts import App

from libs.cli.decisions import (
    Flag,
    agrees,
    reason_of,
    refuse_to_ask_in_json,
    require_terminal,
)
from libs.cli.output import age, console, escape, print_json
from libs.cli.pages import gathered_of, tell_unreachable
from libs.client.operator_client import ask
from libs.contracts.operating import commands as contract
from libs.contracts.operating.commands import SERVICES, CommandState, OpenCommand, Service
from libs.contracts.operating.pages import Order

app = App(name="commands", help="Commands that are not finished: list, retry, abandon.")


@app.command(name="list")
def list_commands(
    *,
    parked: Flag = False,
    service: Service | None = None,
    tenant: str | None = None,
    limit: int = 50,
    json: Flag = False,
) -> int:
    """List commands that are accepted and not finished, the oldest of each service first.

    Such as `bankside commands list --parked`.

    Args:
        parked: Only those that wait for an operator, those that wait longest first.
        service: Only those of this service.
        tenant: Only those of this tenant.
        limit: How many of each service to show at most.
        json: Print one JSON document.
    """
    found: list[OpenCommand] = []
    silent: list[str] = []
    for name in (service,) if service is not None else SERVICES:
        query = contract.ListCommandsOf(
            service=name,
            tenant=tenant,
            state=CommandState.PARKED if parked else None,
            order=Order.OLDEST,
        )
        items, unreachable = gathered_of(contract.LIST_COMMANDS, query, limit, service=name)
        found += items
        silent += unreachable
    if json:
        print_json({"commands": [command.model_dump() for command in found]})
        return tell_unreachable(silent)
    for command in found:
        _show(command)
    if not found and not silent:
        console().print("There is none.")
    return tell_unreachable(silent)


@app.command
def retry(
    command_id: UUID, /, *, reason: str, service: Service | None = None, json: Flag = False
) -> int:
    """Have a command driven now. A parked one is driven anew, and parked again after as many faults as before.

    Of commands that must be carried out in order it becomes the last: those that were accepted after it may have been
    carried out meanwhile, and what it changes overwrites what they changed.

    Such as `bankside commands retry COMMAND_ID --reason "the provider answers again"`.

    Args:
        command_id: As listed.
        reason: Why, such as what was mended.
        service: The service that has it; without, all are searched.
        json: Print one JSON document.
    """
    found = _find(command_id, service)
    command = ask(
        contract.RETRY_COMMAND,
        _decision(found, reason_of(reason)),
    )
    if json:
        print_json(command.model_dump())
        return 0
    _show(command)
    console().print(
        f"It is being driven; `bankside commands list --service {command.service}` shows its state."
    )
    return 0


@app.command
def abandon(
    command_id: UUID,
    /,
    *,
    reason: str,
    service: Service | None = None,
    yes: Flag = False,
    json: Flag = False,
) -> int:
    """End a parked command for good, after finding out by other means what it did.

    A request that repeats it is answered 409 `abandoned` from then on. No write to a provider is reversed. The
    operator's name and the reason stay in the command's row, which is never purged.

    Such as `bankside commands abandon COMMAND_ID --reason "the bank has no such customer"`.

    Args:
        command_id: As listed.
        reason: Why, and what is known of its effects.
        service: The service that has it; without, all are searched.
        yes: Do not ask.
        json: Print one JSON document; needs --yes.
    """
    reason = reason_of(reason)
    refuse_to_ask_in_json(yes=yes, json=json)
    found = _find(command_id, service)
    if not yes and not _agreed(found):
        console().print("Nothing was done.")
        return 1
    done = ask(
        contract.ABANDON_COMMAND,
        _decision(found, reason),
    )
    if json:
        print_json(done.model_dump())
    else:
        console().print(f"Abandoned: {command_id}  {escape(done.operation)}")
    return 0


def _find(command_id: UUID, service: Service | None) -> OpenCommand:
    return ask(contract.GET_COMMAND, contract.FindCommandOf(command_id=command_id, service=service))


def _decision(found: OpenCommand, reason: str) -> contract.DecideOnCommandOf:
    return contract.DecideOnCommandOf.model_validate(
        {"command_id": found.command_id, "service": found.service, "reason": reason}
    )


def _agreed(command: OpenCommand) -> bool:
    require_terminal()
    _show(command)
    return agrees("End it for good, though it may have had its effect?")


def _show(command: OpenCommand) -> None:
    out, now = console(), datetime.now(UTC)
    out.print(
        f"[bold]{command.command_id}[/]  {escape(command.operation)}"
        f"  {escape(command.ordering_key or command.tenant or '')}  of {command.service}"
    )
    out.print(
        f"    for {age(command.accepted_at, now)}, attempts {command.attempts},"
        f" last error {command.last_error or 'none'}"
    )
    if command.parked_at is not None:
        because = escape(command.parked_because or "")
        out.print(f"    [red]parked[/] for {age(command.parked_at, now)}: {because}")
