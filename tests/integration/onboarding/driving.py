"""Commands accepted and driven in the test's own process, as the runtime does it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from uuid import UUID, uuid4

from libs.contracts.errors import BanksideError
from libs.contracts.exact_json import encode
from libs.contracts.principal import Principal
from libs.contracts.result import Result
from libs.handling.commands import CommandHandler, Drive
from libs.handling.group_commit import GroupCommit
from libs.persistence import inbox, inbox_acceptance
from libs.persistence.engine import Database
from libs.persistence.inbox_acceptance import KnownCommand, NewCommand
from tests.integration.tables import finish


def any_order() -> str:
    """The order that the service gives a command about a customer as it records it: here one of its own."""
    return f"of the test/{uuid4()}"


async def accept(
    database: Database,
    operation: str,
    principal: Principal,
    ordering_key: str | None = None,
    *,
    command_id: UUID | None = None,
) -> inbox.Leased:
    """A command of a caller that does not wait any more."""
    command = _arriving(operation, principal, command_id or uuid4(), str(uuid4()))
    async with database.transaction() as connection:
        leased = await inbox_acceptance.accept(
            connection,
            command,
            ordering_key,
            lease=True,
            lease_seconds=inbox.LONGEST_LEASE_SECONDS,
        )
    assert isinstance(leased, inbox.Leased)
    return leased


async def claim(database: Database) -> list[inbox.Leased]:
    """Every command that is due, those included that tests before have left open."""
    async with database.driver() as connection:
        return await inbox.claim(connection, 10_000, inbox.LONGEST_LEASE_SECONDS)


async def claim_again(database: Database, leased: inbox.Leased) -> inbox.Leased:
    """The command as the next process gets it."""
    claimed = await claim(database)
    return next(one for one in claimed if one.command_id == leased.command_id)


async def refuse(
    database: Database, operation: str, principal: Principal, command_id: UUID, message_id: str
) -> None:
    """Another request for a command that is not final."""
    command = _arriving(operation, principal, command_id, message_id)
    async with database.transaction() as connection:
        known = await inbox_acceptance.accept(connection, command, None, lease=True)
    assert known == KnownCommand(False, None, b"{}", None)


def _arriving(
    operation: str, principal: Principal, command_id: UUID, message_id: str
) -> NewCommand:
    return NewCommand(
        command_id=command_id,
        operation=operation,
        message_id=message_id,
        request_id=str(uuid4()),
        principal=encode(principal),
        tenant=principal.tenant,
        body=b"{}",
        body_hash=None,
        reply_to=None,
        deadline=0,
    )


async def drive(
    database: Database,
    handlers: Mapping[str, CommandHandler],
    leased: inbox.Leased,
    principal: Principal,
    command: Any,
) -> Result:
    driven = Drive(
        command_id=leased.command_id,
        operation=leased.operation,
        principal=principal,
        request_id=leased.request_id,
        deadline=leased.deadline,
        attempt=leased.attempts,
        database=database,
        group_commit=GroupCommit(database),
        lease=leased,
    )
    return await handlers[leased.operation](driven, command)


async def drive_to_end(
    database: Database,
    handlers: Mapping[str, CommandHandler],
    leased: inbox.Leased,
    principal: Principal,
    command: Any,
) -> Result:
    """As `drive`; where the answer is final, the command is finished, as by its driver."""
    try:
        result = await drive(database, handlers, leased, principal, command)
    except BanksideError as error:
        if error.status < 500:
            await finish(database, leased)
        raise
    await finish(database, leased)
    return result
