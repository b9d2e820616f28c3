"""Writes the audit of a service's commands: each once, when it is final."""

from __future__ import annotations

from typing import NoReturn

from libs.contracts.errors import Unavailable
from libs.contracts.table import BY_NAME
from libs.handling.periodic import repeat
from libs.handling.stored_commands import principal_of, reply_of
from libs.persistence import audit, audited_commands
from libs.persistence.audit import Entry
from libs.persistence.audited_commands import BATCH, FinishedCommand
from libs.persistence.engine import Database

WRITE_SECONDS = 2.0
UNREADABLE = "unreadable"
"""The outcome of a command whose reply this release cannot read, and the actor of one whose principal it cannot."""


async def audit_commands_for_ever(database: Database) -> NoReturn:
    """Append the commands that were finished to the audit, every `WRITE_SECONDS`. Replicas share the work."""

    async def append_all() -> None:
        while await _append(database) == BATCH:
            pass

    await repeat("audit", append_all, WRITE_SECONDS)


async def _append(database: Database) -> int:
    async with database.transaction() as connection:
        commands = await audited_commands.take(connection)
        if commands:
            await audited_commands.mark(connection, commands)
            await audit.append(connection, [_entry(command) for command in commands])
    return len(commands)


def _entry(command: FinishedCommand) -> Entry:
    principal = principal_of(command.principal)
    return Entry(
        at=command.accepted_at,
        actor=principal.actor if principal else UNREADABLE,
        action=command.operation,
        outcome=_outcome(command),
        subject={
            "command_id": str(command.command_id),
            "customer_id": principal.customer_id if principal else None,
        },
        tenant=(principal.tenant or None) if principal else None,
        address=principal.address if principal else None,
        request_id=command.request_id,
        body_digest=_body_digest(command),
        key=principal.subscription_key if principal and principal.operator else None,
        browser=principal.browser if principal else None,
    )


def _body_digest(command: FinishedCommand) -> str | None:
    """None for a body with sensitive fields: with the lookup key they could be found by trial from its digest, since a
    body may be nothing but a tax number, of which there are 10^9. None also for an operation that this release does not
    know, since it may have such fields.
    """
    operation = BY_NAME.get(command.operation)
    return command.body_hash if operation and not operation.command_shape else None


def _outcome(command: FinishedCommand) -> str:
    if command.reply is None:
        # Rows from before the code was stored: most of these forgotten commands were answered 503.
        return command.last_error or Unavailable.code
    stored = reply_of(command.reply)
    if stored is None:
        return UNREADABLE
    return "ok" if stored.error is None else stored.error.code
