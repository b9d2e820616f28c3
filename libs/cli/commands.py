"""`bankside commands`: what services have accepted and not finished, and what to do about commands that are parked."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from datetime import UTC, datetime
from importlib import import_module
from importlib.metadata import entry_points
from typing import Any
from uuid import UUID

import msgspec
from cyclopts import App
from rich.markup import escape
from sqlalchemy.ext.asyncio import AsyncConnection

from libs.cli.audit import record
from libs.cli.database import database_variable, with_database
from libs.cli.decisions import (
    Flag,
    agrees,
    operator_of,
    reason_of,
    refuse_to_ask_in_json,
    require_terminal,
)
from libs.cli.entries import OPERATORS
from libs.cli.output import age, console, print_json
from libs.client.errors import OperatorError
from libs.contracts.errors import Abandoned
from libs.contracts.exact_json import encode
from libs.contracts.principal import Principal
from libs.contracts.table import OPERATIONS
from libs.messaging.envelope import Reply, WireError
from libs.persistence import parking
from libs.persistence.engine import Database
from libs.persistence.parking import OpenCommand
from libs.secret_sources import is_set

MAX_SHOWN = 1000
WHY_NOT_ABANDONED = "why_not_abandoned"
"""The name under which a service's module of operators' commands has its `WhyNotAbandoned`, if it has one."""

SERVICES = tuple(
    dict.fromkeys(operation.service for operation in OPERATIONS if not operation.is_query)
)
"""The services that carry out commands."""

WhyNotAbandoned = Callable[[AsyncConnection, str, UUID], Awaitable[str | None]]
"""Why a command of this operation and id must not be abandoned, as a sentence; None when it may be. The command is
locked by the transaction.
"""

app = App(name="commands", help="Commands that are not finished: list, retry, abandon.")


@app.command(name="list")
def list_commands(
    *, parked: Flag = False, service: str | None = None, limit: int = 50, json: Flag = False
) -> int:
    """List commands that are accepted and not finished, the oldest of each service first.

    Args:
        parked: Only those that wait for an operator, those that wait longest first.
        service: Only those of this service.
        limit: Show at most so many of each service.
        json: Print one JSON document.
    """
    if not 1 <= limit <= MAX_SHOWN:
        raise OperatorError(f"--limit is 1 to {MAX_SHOWN}.")

    async def look(database: Database) -> list[OpenCommand]:
        async with database.transaction() as connection:
            return await parking.oldest(connection, parked_only=parked, limit=limit)

    found = [
        (name, command) for name in _services(service) for command in with_database(name, look)
    ]
    if json:
        print_json({"commands": [_document(name, command) for name, command in found]})
        return 0
    for name, command in found:
        _show(name, command)
    if not found:
        console().print("There is none.")
    return 0


@app.command
def retry(command_id: UUID, /, *, service: str | None = None, json: Flag = False) -> int:
    """Have a command driven now. A parked one is driven anew, and parked again after as many faults as before.

    Of commands that must be carried out in order it becomes the last: those that were accepted after it may have been
    carried out meanwhile, and what it changes overwrites what they changed.

    Args:
        command_id: As listed.
        service: The service that has it; without, all are searched.
        json: Print one JSON document.
    """
    name, _ = _look_up(command_id, service)

    async def work(database: Database) -> OpenCommand | None:
        async with database.transaction() as connection:
            if await parking.retry(connection, command_id) is None:
                return None
            await record(connection, "commands.retry", command_id=str(command_id))
            return await parking.find(connection, command_id)

    command = _still_open(with_database(name, work), command_id)
    if json:
        print_json(_document(name, command))
        return 0
    _show(name, command)
    console().print(
        f"It is being driven; `bankside commands list --service {name}` shows its state."
    )
    return 0


@app.command
def abandon(
    command_id: UUID,
    /,
    *,
    reason: str,
    by: str | None = None,
    service: str | None = None,
    yes: Flag = False,
    json: Flag = False,
) -> int:
    """End a parked command for good, after finding out by other means what it did.

    A request that repeats it is answered 409 `abandoned` from then on. No write to a provider is reversed. Name and
    reason stay in the command's row, which is never purged.

    Args:
        command_id: As listed.
        reason: Why, and what is known of its effects.
        by: Who decides; without, the name of the user of this terminal.
        service: The service that has it; without, all are searched.
        yes: Do not ask.
        json: Print one JSON document; needs --yes.
    """
    reason, operator = reason_of(reason), operator_of(by)
    refuse_to_ask_in_json(yes=yes, json=json)
    name, found = _look_up(command_id, service)
    if not yes and not _agreed(name, found):
        console().print("Nothing was done.")
        return 1
    why_not = _why_not_abandoned(name)

    async def work(database: Database) -> OpenCommand | None:
        async with database.transaction() as connection:
            command = await parking.lock(connection, command_id)
            if command is None:
                return None
            if command.parked_at is None:
                raise OperatorError(
                    "Only a parked command can be abandoned; this one is still driven."
                )
            objection = await why_not(connection, command.operation, command_id)
            if objection is not None:
                raise OperatorError(objection)
            await parking.abandon(
                connection, command, reply=_reply(command), by=operator, because=reason
            )
            await record(
                connection,
                "commands.abandon",
                by=operator,
                command_id=str(command_id),
                reason=reason,
            )
            return command

    command = _still_open(with_database(name, work), command_id)
    if json:
        print_json(
            {"service": name, "command_id": str(command_id), "abandoned_by": operator}
            | {"reason": reason}
        )
    else:
        console().print(f"Abandoned: {command_id}  {escape(command.operation)}")
    return 0


def _reply(command: OpenCommand) -> bytes:
    """The reply to a request that repeats an abandoned command."""
    return encode(
        Reply(
            id=str(command.command_id),
            to=command.message_id,
            error=WireError.of(Abandoned()),
            request_id=command.request_id,
        )
    )


def _why_not_abandoned(service: str) -> WhyNotAbandoned:
    """What the service has to say, by the modules of its operators' commands."""
    modules = {
        entry.module
        for entry in entry_points(group=OPERATORS)
        if entry.module.split(".")[1] == service
    }
    checks: list[WhyNotAbandoned] = [
        check
        for module in sorted(modules)
        if (check := getattr(import_module(module), WHY_NOT_ABANDONED, None)) is not None
    ]

    async def why_not(connection: AsyncConnection, operation: str, command_id: UUID) -> str | None:
        for check in checks:
            if (objection := await check(connection, operation, command_id)) is not None:
                return objection
        return None

    return why_not


def _services(wanted: str | None) -> Sequence[str]:
    """The services to look at: the one wanted, else those whose databases are known here."""
    if wanted is not None:
        if wanted not in SERVICES:
            raise OperatorError(
                f"There is no service {wanted!r} with commands; there are: {', '.join(SERVICES)}."
            )
        return (wanted,)
    known = [name for name in SERVICES if is_set(database_variable(name))]
    if not known:
        variables = " or ".join(database_variable(name) for name in SERVICES)
        raise OperatorError(f"Set {variables}, or start the stack (make up).")
    return known


def _look_up(command_id: UUID, service: str | None) -> tuple[str, OpenCommand]:
    async def look(database: Database) -> OpenCommand | None:
        async with database.transaction() as connection:
            return await parking.find(connection, command_id)

    for name in _services(service):
        found = with_database(name, look)
        if found is not None:
            return name, found
    raise OperatorError(f"There is no unfinished command {command_id}.")


def _still_open(command: OpenCommand | None, command_id: UUID) -> OpenCommand:
    if command is None:
        raise OperatorError(f"The command {command_id} has finished meanwhile.")
    return command


def _agreed(service: str, command: OpenCommand) -> bool:
    require_terminal()
    _show(service, command)
    return agrees("End it for good, though it may have had its effect?")


def _show(service: str, command: OpenCommand) -> None:
    out, now = console(), datetime.now(UTC)
    tenant = _tenant(command)
    out.print(
        f"[bold]{command.command_id}[/]  {escape(command.operation)}"
        f"  {escape(command.ordering_key or tenant or '')}  of {service}"
    )
    out.print(
        f"    for {age(command.accepted_at, now)}, attempts {command.attempts},"
        f" last error {command.last_error or 'none'}"
    )
    if command.parked_at is not None:
        because = escape(command.parked_because or "")
        out.print(f"    [red]parked[/] for {age(command.parked_at, now)}: {because}")


def _document(service: str, command: OpenCommand) -> dict[str, Any]:
    return {
        "service": service,
        "command_id": str(command.command_id),
        "operation": command.operation,
        "ordering_key": command.ordering_key,
        "tenant": _tenant(command),
        "request_id": command.request_id,
        "accepted_at": command.accepted_at,
        "attempts": command.attempts,
        "faults": command.faults,
        "last_error": command.last_error,
        "next_attempt_at": None if command.parked_at else command.next_attempt_at,
        "is_driven": command.is_driven,
        "parked_at": command.parked_at,
        "parked_because": command.parked_because,
    }


def _tenant(command: OpenCommand) -> str | None:
    """None when the stored principal cannot be read, which may be why the command is parked."""
    try:
        return msgspec.json.decode(command.principal, type=Principal).tenant
    except msgspec.MsgspecError:
        return None
