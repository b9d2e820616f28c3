"""One drive of a command: the handler runs, its result is committed, and the caller is answered."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any
from uuid import UUID

import msgspec
import structlog
from pydantic import ValidationError

from libs.backoff import Backoff
from libs.contracts.errors import (
    ApproverIsInitiator,
    BanksideError,
    InternalError,
    Invalid,
    Unavailable,
)
from libs.contracts.exact_json import NotExactJson, decode, encode
from libs.contracts.operation import Operation
from libs.contracts.principal import Principal
from libs.contracts.request_context import RequestContext, request_context
from libs.contracts.result import Result
from libs.contracts.sensitive import Sealer
from libs.contracts.table import operations_of
from libs.handling.answers import CommandAnswers, error_reply
from libs.handling.awaiting import AWAITED_RETRIES, OutcomeAwaited
from libs.handling.forgetting import Forgetting
from libs.handling.group_commit import GroupCommit, Write, fenced_write
from libs.handling.parking import (
    INTERRUPTED,
    INTERRUPTIONS_IN_A_ROW,
    Fault,
    NeedsOperator,
    Parking,
)
from libs.handling.payloads import open_body, success
from libs.handling.stored_commands import principal_of
from libs.messaging.envelope import Reply
from libs.persistence import inbox, leased_writes
from libs.persistence.availability import is_away
from libs.persistence.engine import Database
from libs.persistence.leased_writes import LeasedValue
from libs.persistence.sealing import CannotOpen
from libs.runtime.crash import crash_point

RETRIES = Backoff(first_seconds=0.25, longest_seconds=30.0, jitter=0.2)

HANDLER_SECONDS = 3600.0
"""A run of a handler that takes longer is cancelled, as a fault of ours, so that none holds a drive for ever.
Handlers end far earlier, but for those that go through millions of rows, which keep their progress.
"""

STARTED_NOTHING = (ApproverIsInitiator, Invalid, Unavailable)
"""Errors of a service that use up no Idempotency-Key. A stored 403 would be repeated to the customer's other keys too,
which may approve.
"""

Handle = Callable[[inbox.Leased, Principal, Any], Awaitable[Result]]
Ending = Reply | Fault | NeedsOperator | OutcomeAwaited
"""How a run of the handler ended."""


class HandlerTooLong(Exception):
    """A run of a handler took longer than `HANDLER_SECONDS`."""


def finishing(keep_bodies_of: frozenset[str]) -> Write[LeasedValue[bytes], None]:
    """The write that stores final replies. `keep_bodies_of`: operations whose commands keep their bodies."""
    return fenced_write("finish", partial(leased_writes.finish, keep_bodies_of=keep_bodies_of))


class CommandRunner:
    """Runs the handlers of one service.

    Args:
        keep_for_ever: operations whose replies are never purged. Bodies without sensitive fields are kept with them: a
            repeated request is compared with the body once the gateway no longer has the key of its hash.
    """

    def __init__(
        self,
        service: str,
        database: Database,
        group_commit: GroupCommit,
        sealer: Sealer,
        answers: CommandAnswers,
        handle: Handle,
        keep_for_ever: frozenset[str],
    ) -> None:
        self._service = service
        self._rows = {row.name: row for row in operations_of(service) if not row.is_query}
        sealed = {name for name, row in self._rows.items() if row.command_shape}
        self._finishing = finishing(keep_for_ever - sealed)
        self._database = database
        self._group_commit = group_commit
        self._sealer = sealer
        self._answers = answers
        self._parking = Parking(database)
        self._forgetting = Forgetting(service, database, answers, self._parking)
        self._handle = handle
        self._concluding: set[UUID] = set()
        """Leases of drives whose handler has ended."""
        self._log = structlog.get_logger("commands")

    async def run(self, leased: inbox.Leased) -> str:
        """Drive the command once; the outcome for the metrics.

        Raises:
            LeaseLost, or what the database raises while it is away.
        """
        try:
            if leased.forgetting:
                self._concluding.add(leased.lease)
                await self._forgetting.resume(leased)
                return Unavailable.code
            ending = await self._run_handler(leased)
            await self._conclude(leased, ending)
            return _outcome(ending)
        finally:
            self._concluding.discard(leased.lease)

    def is_concluding(self, leased: inbox.Leased) -> bool:
        """Whether the handler has ended: the drive may end its lease itself, and still has to answer the caller."""
        return leased.lease in self._concluding

    async def _run_handler(self, leased: inbox.Leased) -> Ending:
        command_id = str(leased.command_id)
        row = self._rows.get(leased.operation)
        if leased.interruptions >= INTERRUPTIONS_IN_A_ROW:
            return NeedsOperator(INTERRUPTED)
        try:
            principal = principal_of(leased.principal)
            if principal is None:
                unreadable = NeedsOperator(
                    "This release cannot read the stored command (its principal)."
                )
                self._log_failure(leased, unreadable)
                return unreadable
            try:
                request_context.set(RequestContext(leased.request_id, principal.actor))
                command = (
                    open_body(row, command_id, leased.body, self._sealer)
                    if row
                    else decode(leased.body)
                )
            except (ValidationError, NotExactJson, msgspec.MsgspecError) as error:
                # Only another release can read the stored command.
                self._log_failure(leased, error)
                return NeedsOperator(
                    f"This release cannot read the stored command ({type(error).__name__})."
                )
            result = await self._handled(leased, principal, command)
            return self._success(row, leased, result)
        except inbox.LeaseLost:
            raise
        except (NeedsOperator, OutcomeAwaited) as ending:
            return ending
        except CannotOpen as error:
            # Driving it again here does not bring the key back: an operator retries it, as after each replica has it.
            self._log_failure(leased, error)
            return NeedsOperator(f"A sealed value cannot be opened: {error}.")
        except InternalError as error:
            self._log_failure(leased, error)
            return Fault(type(error).__name__)
        except BanksideError as error:
            return error_reply(command_id, leased.message_id, error, leased.request_id)
        except Exception as error:
            if is_away(error):
                raise
            self._log_failure(leased, error)
            return Fault(type(error).__name__)

    async def _handled(self, leased: inbox.Leased, principal: Principal, command: Any) -> Result:
        """Raises HandlerTooLong, and what the handler raises."""
        try:
            async with asyncio.timeout(HANDLER_SECONDS) as bound:
                return await self._handle(leased, principal, command)
        except TimeoutError as error:
            if bound.expired():
                raise HandlerTooLong(leased.operation) from error
            raise

    def _log_failure(self, leased: inbox.Leased, error: Exception) -> None:
        self._log.error(
            "command_failed",
            command=str(leased.command_id),
            operation=leased.operation,
            attempts=leased.attempts,
            exc_info=error,
        )

    def _success(self, row: Operation | None, leased: inbox.Leased, result: Result) -> Reply:
        if row is None:
            return Reply(id=str(leased.command_id), to=leased.message_id)
        return success(row, str(leased.command_id), leased.message_id, result, self._sealer)

    async def _conclude(self, leased: inbox.Leased, ending: Ending) -> None:
        """Commit the ending of a drive, and answer the caller if the command is final.

        A command that is driven again or parked may still become final. Its caller is answered `outcome_pending` only:
        it would take an error for the end, and send again what is carried out later.
        """
        crash_point(f"{self._service}.concluding")
        self._concluding.add(leased.lease)
        final: Reply | None = None
        match ending:
            case NeedsOperator():
                await self._parking.park(leased, str(ending))
            case Fault():
                pause = RETRIES.pause_seconds(leased.attempts)
                await self._parking.count(leased, ending, error=InternalError.code, pause=pause)
            case OutcomeAwaited():
                await self._rest(leased, ending)
            case Reply():
                final = await self._conclude_reply(leased, ending)
        crash_point(f"{self._service}.concluded")
        if final is not None and leased.reply_to is not None and leased.deadline > time.time():
            self._answers.send(leased.reply_to, final)

    async def _rest(self, leased: inbox.Leased, ending: OutcomeAwaited) -> None:
        async with inbox.fenced(self._database, leased) as connection:
            pause = 0.0
            if await ending.is_awaited(connection):
                pause = AWAITED_RETRIES.pause_seconds(leased.attempts)
            await inbox.postpone(connection, leased, seconds=pause, error=ending.code)

    async def _conclude_reply(self, leased: inbox.Leased, reply: Reply) -> Reply | None:
        """The reply, if it is final and the caller is not yet answered."""
        error = reply.error.to_error() if reply.error else None
        if isinstance(error, STARTED_NOTHING) and await self._forgetting.forget(
            leased, reply, error.code
        ):
            return None
        if error is None or error.status < 500:
            await self._group_commit.commit(self._finishing, LeasedValue(leased, encode(reply)))
            return reply
        async with inbox.fenced(self._database, leased) as connection:
            pause = RETRIES.pause_seconds(leased.attempts)
            await inbox.postpone(connection, leased, seconds=pause, error=error.code)
        return None


def _outcome(ending: Ending) -> str:
    match ending:
        case NeedsOperator():
            return "parked"
        case Fault():
            return InternalError.code
        case OutcomeAwaited():
            return ending.code
        case Reply():
            return ending.error.code if ending.error else "ok"
