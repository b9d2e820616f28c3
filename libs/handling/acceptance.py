"""Accepting commands: a new one is recorded, and a request that repeats a known one is answered from the record."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import asyncpg
import msgspec
import structlog
from sqlalchemy.exc import DBAPIError

from libs import tracing
from libs.batching import TooManyWaiting
from libs.contracts.errors import IdempotencyInProgress, OutcomePending
from libs.contracts.exact_json import decode, encode
from libs.contracts.principal import Principal
from libs.contracts.table import operations_of
from libs.handling.answers import CommandAnswers, error_reply
from libs.handling.driving import Driver
from libs.handling.group_commit import GroupCommit, Write
from libs.handling.metrics import COMMANDS_ACCEPTED
from libs.handling.outage_log import OutageLog
from libs.handling.payloads import require_keys
from libs.handling.repetitions import refusal_of
from libs.handling.stored_commands import reply_of
from libs.messaging.command_consumer import MayBeForgotten, UnknownKey
from libs.messaging.envelope import Envelope
from libs.messaging.message_sealer import MessageSealer
from libs.persistence import inbox, inbox_acceptance, inbox_housekeeping
from libs.persistence.async_engine import AsyncConnection
from libs.persistence.availability import is_away
from libs.persistence.engine import Database
from libs.persistence.inbox_acceptance import KnownCommand, NewCommand
from libs.persistence.sealing import CannotOpen
from libs.runtime.crash import crash_point

DATABASE_RETRY_SECONDS = 0.5
SURELY_KNOWN_SECONDS = (inbox_housekeeping.RETENTION_HOURS - 1) * 3600
"""After its deadline: until then no command that was carried out is purged. The hour is for clocks that differ."""
MAY_BE_FORGOTTEN = (
    "This command was sent about a day ago or earlier, was delivered before, and is not in the inbox. It may have been"
    " carried out and purged, so that carrying it out now could repeat its effect. Find out whether it had one; if not,"
    " replay it with `apply_again`."
)
UNKNOWN_KEY = (
    "A sealed value of it cannot be opened: {}. Put that key back and replay it, or have its caller send it again under"
    " the same Idempotency-Key."
)
_FAULTS_OF_COMMAND = (
    asyncpg.DataError,
    asyncpg.IntegrityConstraintViolationError,
    asyncpg.ProgramLimitExceededError,  # a text that is too long for its index
)
"""Of the driver: SQLAlchemy's asyncpg dialect raises no `DataError` of its own, but a plain `DBAPIError`."""


@dataclass(frozen=True, slots=True)
class Arriving:
    """A command as it arrives: `body` is decoded, its sensitive fields still sealed."""

    command_id: UUID
    operation: str
    principal: Principal
    body: dict[str, Any]


Ordering = Callable[[AsyncConnection, Arriving], Awaitable[str | None]]
"""The ordering key of a command: commands with the same key are driven one at a time, each until it is over or has left
the order (`inbox_acceptance.leave_order`). A command that has a key is recorded in the transaction that found the key.
"""


def new_command(
    envelope: Envelope, reply_to: str | None, *, keep_for_ever: bool, has_place: bool = False
) -> NewCommand:
    """The record of an envelope."""
    return NewCommand(
        command_id=UUID(envelope.id),
        operation=envelope.operation,
        message_id=envelope.message_id,
        request_id=envelope.request_id,
        principal=encode(envelope.principal),
        tenant=envelope.principal.tenant,
        body=bytes(envelope.body),
        body_hash=envelope.body_hash,
        reply_to=reply_to,
        deadline=envelope.deadline,
        keep_for_ever=keep_for_ever,
        trace=tracing.storable(envelope.trace),
        has_place=has_place,
    )


def arriving(command: NewCommand, envelope: Envelope) -> Arriving:
    """The command in the form from which `Ordering` finds its key."""
    body = decode(command.body)
    return Arriving(command.command_id, command.operation, envelope.principal, body)


def is_fault_of_command(error: Exception) -> bool:
    """Whether recording the command would always fail. A database that is away, or not migrated, is waited for."""
    if isinstance(error, TooManyWaiting):
        return False
    if isinstance(error, DBAPIError):
        return isinstance(error.driver_exception, _FAULTS_OF_COMMAND) and not is_away(error)
    return not is_away(error)


Recorded = inbox.Leased | KnownCommand | None
"""What became of a command. `Leased`: new, drive it now. None: new, waits for its turn or for capacity.
`KnownCommand`: the id was recorded before.
"""


def recording(lease_seconds: float) -> Write[NewCommand, Recorded]:
    """The write that records commands without ordering keys."""

    async def together(
        connection: asyncpg.Connection, commands: Sequence[NewCommand]
    ) -> Mapping[UUID, Recorded]:
        return await inbox_acceptance.accept_together(
            connection, commands, lease_seconds=lease_seconds
        )

    async def alone(database: Database, command: NewCommand) -> Recorded:
        async with database.transaction() as connection:
            return await inbox_acceptance.accept(
                connection, command, None, lease=command.has_place, lease_seconds=lease_seconds
            )

    return Write("accept", together, alone)


class Acceptance:
    """Records the commands of one service and starts those that were leased at once.

    Args:
        ordering: None when no command of the service has to wait for another.
        unordered: operations of which no command has an ordering key.
    """

    def __init__(
        self,
        service: str,
        database: Database,
        sealer: MessageSealer,
        answers: CommandAnswers,
        driver: Driver,
        group_commit: GroupCommit,
        ordering: Ordering | None,
        unordered: frozenset[str],
        keep_for_ever: frozenset[str],
    ) -> None:
        self._service = service
        self._rows = {row.name: row for row in operations_of(service)}
        self._database = database
        self._sealer = sealer
        self._group_commit = group_commit
        self._recording = recording(driver.lease_seconds)
        self._answers = answers
        self._driver = driver
        self._ordering = ordering
        self._unordered = unordered
        self._keep_for_ever = keep_for_ever
        self._not_recorded = OutageLog("commands", "not_recorded")
        self._log = structlog.get_logger("commands")

    async def accept(self, envelope: Envelope, reply_to: str | None, is_redelivered: bool) -> None:
        """Record the command; returns once that is committed, however long the database is away.

        Raises:
            MayBeForgotten: it was delivered before, its deadline was about a day ago, and it is not known. It may have
                been carried out and purged, or its caller been told that nothing was started.
            UnknownKey: it is sealed by a key that this service lacks, and is not known.
        """
        began = time.time()
        while True:
            # An attempt of unknown outcome, or another process, may have recorded it so long ago that it is purged.
            may_be_recorded = is_redelivered or time.time() - began > SURELY_KNOWN_SECONDS
            with self._driver.place(envelope.principal.tenant) as has_place:
                try:
                    recorded = await self._record(
                        envelope, reply_to, may_be_recorded, has_place=has_place
                    )
                except Exception as error:
                    if is_fault_of_command(error):
                        raise
                    self._not_recorded.note(error, command=envelope.id)
                else:
                    self._recorded(envelope, reply_to, recorded, had_place=has_place)
                    return
            await asyncio.sleep(DATABASE_RETRY_SECONDS)

    def _recorded(
        self, envelope: Envelope, reply_to: str | None, recorded: Recorded, *, had_place: bool
    ) -> None:
        crash_point(f"{self._service}.accepted")
        if isinstance(recorded, KnownCommand):
            self._answer_again(envelope, reply_to, recorded)
            return
        COMMANDS_ACCEPTED.labels(envelope.operation, "new").inc()
        self._answers.answer_by_deadline(
            envelope.id, envelope.message_id, reply_to, envelope.deadline
        )
        if recorded is not None:
            self._driver.start(recorded)
        elif not had_place and self._driver.has_place(envelope.principal.tenant):
            self._driver.wake()  # else the end of a drive, or the next sweep, finds it

    async def _record(
        self, envelope: Envelope, reply_to: str | None, may_be_recorded: bool, *, has_place: bool
    ) -> Recorded:
        keep = envelope.operation in self._keep_for_ever
        command = new_command(envelope, reply_to, keep_for_ever=keep, has_place=has_place)
        try:
            if (row := self._rows.get(envelope.operation)) is not None:
                require_keys(row, envelope.id, command.body, self._sealer)
        except CannotOpen as error:
            return await self._find(command, UnknownKey(UNKNOWN_KEY.format(error)))
        is_old = time.time() - envelope.deadline > SURELY_KNOWN_SECONDS
        if is_old and may_be_recorded:
            return await self._find(command, MayBeForgotten(MAY_BE_FORGOTTEN))
        if self._ordering is not None and envelope.operation not in self._unordered:
            async with self._database.transaction() as connection:
                key = await self._ordering(connection, arriving(command, envelope))
                if key is not None:
                    return await inbox_acceptance.accept(
                        connection,
                        command,
                        key,
                        lease=command.has_place,
                        lease_seconds=self._driver.lease_seconds,
                    )
        return await self._group_commit.commit(self._recording, command)

    async def _find(self, command: NewCommand, unless: Exception) -> KnownCommand:
        """The stored record of the command. Records nothing: a new row is rolled back. Raises `unless` when there was
        none.
        """
        async with self._database.transaction() as connection:
            recorded = await inbox_acceptance.accept(connection, command, None, lease=False)
            if not isinstance(recorded, KnownCommand):
                raise unless
        return recorded

    def _answer_again(self, envelope: Envelope, reply_to: str | None, known: KnownCommand) -> None:
        """Answer a second request with the id of a known command. A redelivery of the first message is not answered."""
        COMMANDS_ACCEPTED.labels(
            envelope.operation, "redelivered" if known.is_redelivery else "repeated"
        ).inc()
        if known.is_redelivery or reply_to is None:
            return
        if (refusal := refusal_of(envelope, known)) is not None:
            reply = error_reply(envelope.id, envelope.message_id, refusal)
        elif known.reply is None:
            reply = error_reply(envelope.id, envelope.message_id, IdempotencyInProgress())
        elif (stored := reply_of(known.reply)) is not None:
            reply = msgspec.structs.replace(stored, to=envelope.message_id, replayed=True)
        else:
            # Only another release can read it; what a later repetition is told there is the first answer.
            self._log.error("stored_reply_unreadable", command=envelope.id)
            reply = error_reply(envelope.id, envelope.message_id, OutcomePending())
        self._answers.send(reply_to, reply)
