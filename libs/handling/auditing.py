"""Writes the audit of a service's commands: each once, when it is final."""

from __future__ import annotations

import asyncio
from typing import NoReturn

import msgspec
import structlog

from libs.contracts.principal import Principal
from libs.messaging.envelope import decode_reply
from libs.persistence import audit, audited_commands
from libs.persistence.audit import Entry, Head
from libs.persistence.audited_commands import BATCH, FinishedCommand
from libs.persistence.availability import is_away
from libs.persistence.engine import Database

WRITE_SECONDS = 2.0
TAKEN_BACK = "unavailable"
"""The code of the answer to a command that was taken back before anything was started."""

_principal = msgspec.json.Decoder(Principal)


class HeadLog:
    """Logs the last hash that was written, at most once a minute: what a shortened audit is compared with."""

    SECONDS = 60.0

    def __init__(self) -> None:
        self._log = structlog.get_logger("audit")
        self._logged_at: float | None = None

    def written(self, head: Head) -> None:
        now = asyncio.get_running_loop().time()
        if self._logged_at is None or now - self._logged_at >= self.SECONDS:
            self._logged_at = now
            self._log.info("audit_head", head=str(head))


async def audit_commands_for_ever(database: Database) -> NoReturn:
    """Append the commands that were finished, every `WRITE_SECONDS`. Replicas take turns."""
    heads, log = HeadLog(), structlog.get_logger("audit")
    while True:
        try:
            while await _append(database, heads) == BATCH:
                pass
        except Exception as error:
            if not is_away(error):
                raise
            log.warning("database_away")
        await asyncio.sleep(WRITE_SECONDS)


async def _append(database: Database, heads: HeadLog) -> int:
    async with database.transaction() as connection:
        await audit.lock(connection)
        commands = await audited_commands.find(connection)
        head = await audit.append(connection, [_entry(command) for command in commands])
    if head is not None:
        heads.written(head)
    return len(commands)


def _entry(command: FinishedCommand) -> Entry:
    principal = _principal.decode(command.principal)
    return Entry(
        at=command.accepted_at,
        actor=principal.subscription_key,
        action=command.operation,
        outcome=_outcome(command.reply),
        subject={
            "command_id": str(command.command_id),
            "customer_id": principal.customer_id,
        },
        tenant=principal.tenant or None,
        address=principal.address,
        request_id=command.request_id,
        body_digest=command.body_hash,
        message_id=command.message_id,
        finished_at=command.finished_at,
    )


def _outcome(reply: bytes | None) -> str:
    if reply is None:
        return TAKEN_BACK
    error = decode_reply(reply).error
    return "ok" if error is None else error.code
