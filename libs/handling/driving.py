"""The second half of a command: it is driven under a lease until it is final, by this process or the next."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Any
from uuid import UUID

import msgspec
import structlog
from pydantic import ValidationError

from libs.backoff import Backoff
from libs.contracts.errors import (
    BanksideError,
    InternalError,
    Invalid,
    Unavailable,
)
from libs.contracts.exact_json import NotExactJson, decode, encode
from libs.contracts.operation import Operation
from libs.contracts.principal import Principal
from libs.contracts.result import Result
from libs.contracts.sensitive import Sealer
from libs.contracts.table import operations_of
from libs.handling.answers import CommandAnswers, error_reply
from libs.handling.forgetting import Forgetting
from libs.handling.group_commit import GroupCommit, fenced_write
from libs.handling.metrics import (
    COMMANDS_OPEN,
    COMMANDS_PARKED,
    HANDLED_SECONDS,
    LONGEST_PARKED_SECONDS,
    OLDEST_COMMAND_SECONDS,
)
from libs.handling.parking import Fault, NeedsOperator, Parking
from libs.handling.queries import open_command, success
from libs.messaging.envelope import Reply
from libs.persistence import inbox, inbox_housekeeping, leased_writes
from libs.persistence.availability import is_away
from libs.persistence.engine import Database
from libs.persistence.leased_writes import LeasedValue
from libs.runtime.crash import crash_point

DRIVES_AT_ONCE = 64
SWEEP_SECONDS = 0.5
SWEEP_PAUSE_SECONDS = 0.02
RENEWALS = 6
"""In the length of a lease."""
HOUSEKEEPING_SECONDS = 15.0
RETRIES = Backoff(first_seconds=0.25, longest_seconds=30.0, jitter=0.2)

Handle = Callable[[inbox.Leased, Principal, Any], Awaitable[Result]]
Ending = Reply | Fault | NeedsOperator
"""What came of a drive."""

_principals = msgspec.json.Decoder(Principal)


FINISHING = fenced_write("finish", leased_writes.finish)


class Driver:
    """Drives what is leased to this process, at most `DRIVES_AT_ONCE` at a time.

    Args:
        is_ordered: a command may wait for an earlier one of its ordering key.
    """

    def __init__(
        self,
        service: str,
        database: Database,
        group_commit: GroupCommit,
        sealer: Sealer,
        answers: CommandAnswers,
        handle: Handle,
        lease_seconds: float,
        *,
        is_ordered: bool,
    ) -> None:
        self._service = service
        self._rows = {row.name: row for row in operations_of(service) if not row.is_query}
        self._database = database
        self._group_commit = group_commit
        self._sealer = sealer
        self._answers = answers
        self._parking = Parking(database)
        self._forgetting = Forgetting(service, database, answers, self._parking)
        self._handle = handle
        self.lease_seconds = lease_seconds
        self._driving: dict[UUID, tuple[inbox.Leased, asyncio.Task[None]]] = {}
        self._concluding: set[UUID] = set()
        """Leases of drives that have come to their end."""
        self._is_ordered = is_ordered
        self._is_full = False
        """Since the last sweep, due commands may wait for capacity."""
        self._wake = asyncio.Event()
        self._stopping = False
        self._log = structlog.get_logger("commands")

    @property
    def capacity(self) -> int:
        """How many more commands may be driven now."""
        return 0 if self._stopping else max(0, DRIVES_AT_ONCE - len(self._driving))

    def wake(self) -> None:
        """Look for due commands now, rather than at the next sweep."""
        self._wake.set()

    def start(self, leased: inbox.Leased) -> None:
        """Drive a command that was leased to this process."""
        task = asyncio.create_task(self._drive(leased), name=f"drive:{leased.command_id}")
        self._driving[leased.command_id] = (leased, task)
        task.add_done_callback(lambda done: self._driven(leased, done))

    def _driven(self, leased: inbox.Leased, task: asyncio.Task[None]) -> None:
        if self._driving.get(leased.command_id, (None, None))[1] is task:
            del self._driving[leased.command_id]
        self._concluding.discard(leased.lease)
        if self._is_ordered or self._is_full:
            self.wake()
        if not task.cancelled() and (error := task.exception()) is not None:
            # The lease runs out and the sweeper of some process goes on.
            self._log.error("drive_died", command=str(leased.command_id), exc_info=error)

    async def _drive(self, leased: inbox.Leased) -> None:
        started = time.perf_counter()
        crash_point(f"{self._service}.driving")
        try:
            if leased.forgetting:
                self._concluding.add(leased.lease)
                await self._forgetting.resume(leased)
                outcome = Unavailable.code
            else:
                ending = await self._once(leased)
                outcome = _outcome(ending)
                await self._conclude(leased, ending)
        except inbox.LeaseLost:
            self._log.warning("lease_lost", command=str(leased.command_id))
            outcome = "lease_lost"
        except Exception as error:
            if not is_away(error):
                raise
            self._log.warning("database_away", command=str(leased.command_id))
            outcome = "database_away"
        HANDLED_SECONDS.labels(leased.operation, outcome).observe(time.perf_counter() - started)

    async def _once(self, leased: inbox.Leased) -> Ending:
        """Run the handler once."""
        command_id = str(leased.command_id)
        row = self._rows.get(leased.operation)
        try:
            try:
                principal = _principals.decode(leased.principal)
                command = (
                    open_command(row, command_id, leased.body, self._sealer)
                    if row
                    else decode(leased.body)
                )
            except (ValidationError, NotExactJson, msgspec.MsgspecError) as error:
                # Driving it again cannot help; a release that reads what was stored can.
                self._log_failure(leased, error)
                return NeedsOperator(
                    f"This release cannot read the stored command ({type(error).__name__})."
                )
            result = await self._handle(leased, principal, command)
            return self._success(row, leased, result)
        except inbox.LeaseLost:
            raise
        except NeedsOperator as decision:
            return decision
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

    def _log_failure(self, leased: inbox.Leased, error: Exception) -> None:
        self._log.error(
            "command_failed",
            command=str(leased.command_id),
            operation=leased.operation,
            request_id=leased.request_id,
            attempts=leased.attempts,
            exc_info=error,
        )

    def _success(self, row: Operation | None, leased: inbox.Leased, result: Result) -> Reply:
        if row is None:
            return Reply(id=str(leased.command_id), to=leased.message_id)
        return success(row, str(leased.command_id), leased.message_id, result, self._sealer)

    async def _conclude(self, leased: inbox.Leased, ending: Ending) -> None:
        """Commit what came of a drive, and tell the caller what is final.

        While a command goes on or is parked, it may still become final: told of a fault, its caller would take that for
        the end, and send again what is carried out later. So it is told in time that it is pending, and nothing else.
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
            case Reply():
                final = await self._conclude_reply(leased, ending)
        crash_point(f"{self._service}.concluded")
        if final is not None and leased.reply_to is not None and leased.deadline > time.time():
            self._answers.send(leased.reply_to, final)

    async def _conclude_reply(self, leased: inbox.Leased, reply: Reply) -> Reply | None:
        """The reply if it is final and its caller is still to be told."""
        error = reply.error.to_error() if reply.error else None
        nothing_started = isinstance(error, Unavailable | Invalid)
        if nothing_started and await self._forgetting.forget(leased, reply):
            return None
        if error is None or error.status < 500:
            await self._group_commit.commit(FINISHING, LeasedValue(leased, encode(reply)))
            return reply
        async with inbox.fenced(self._database, leased) as connection:
            pause = RETRIES.pause_seconds(leased.attempts)
            await inbox.postpone(connection, leased, seconds=pause, error=error.code)
        return None

    async def sweep(self) -> None:
        """Claim and drive what is due, for ever: resumed, postponed, or waiting for an earlier one of its key."""
        while True:
            try:
                async with asyncio.timeout(SWEEP_SECONDS):
                    await self._wake.wait()
            except TimeoutError:
                pass
            self._wake.clear()
            if not self.capacity:
                self._is_full = True
                continue
            try:
                async with self._database.driver() as connection:
                    # Read again: acceptance may have leased commands while this waited for the connection.
                    capacity = self.capacity
                    claimed = await inbox.claim(connection, capacity, self.lease_seconds)
            except Exception as error:
                self._unless_away(error)
                continue
            self._is_full = len(claimed) == capacity
            for leased in claimed:
                self.start(leased)
            # Hundreds of commands may end in a second, and each wake this loop: claim once for all of them.
            await asyncio.sleep(SWEEP_PAUSE_SECONDS)

    async def renew_leases(self) -> None:
        """Keep the leases of what is being driven, for ever; stop driving what was lost.

        What began since the last time has a lease that is good for longer: among a crowd that comes and goes in no
        time, nothing is renewed, and so nothing waits for that.
        """
        before: set[UUID] = set()
        while True:
            await asyncio.sleep(self.lease_seconds / RENEWALS)
            held = [(one, task) for one, task in self._driving.values() if one.lease in before]
            before = {leased.lease for leased, _ in self._driving.values()}
            if not held:
                continue
            try:
                async with self._database.driver() as connection:
                    leases = [leased for leased, _ in held]
                    still = await inbox.renew(connection, leases, self.lease_seconds)
            except Exception as error:
                self._unless_away(error)
                continue
            for leased, task in held:
                # One that concludes may have ended its lease itself, and still owes its caller the answer.
                if leased.command_id not in still and leased.lease not in self._concluding:
                    task.cancel()

    async def keep_house(self) -> None:
        """Purge what is kept no longer and measure the backlog, for ever."""
        while True:
            try:
                while await self._purged() == inbox_housekeeping.PURGE_BATCH:
                    pass
                async with self._database.transaction() as connection:
                    backlog = await inbox_housekeeping.measure_backlog(connection)
                COMMANDS_OPEN.set(backlog.open)
                OLDEST_COMMAND_SECONDS.set(backlog.oldest_open_seconds)
                COMMANDS_PARKED.set(backlog.parked)
                LONGEST_PARKED_SECONDS.set(backlog.longest_parked_seconds)
            except Exception as error:
                self._unless_away(error)
            await asyncio.sleep(HOUSEKEEPING_SECONDS)

    async def _purged(self) -> int:
        async with self._database.transaction() as connection:
            return await inbox_housekeeping.purge(connection)

    def _unless_away(self, error: Exception) -> None:
        if not is_away(error):
            raise error
        self._log.warning("database_away")

    async def stop(self, seconds: float) -> None:
        """Start nothing more; let drives finish, for so long; give the leases of the rest back."""
        self._stopping = True
        tasks = [task for _, task in self._driving.values()]
        if tasks:
            await asyncio.wait(tasks, timeout=seconds)
        left = list(self._driving.values())
        for _, task in left:
            task.cancel()
        if left:
            await asyncio.wait([task for _, task in left], timeout=1)
            try:
                async with self._database.driver() as connection:
                    await inbox.release(connection, [leased for leased, _ in left])
            except Exception as error:
                self._unless_away(error)


def _outcome(ending: Ending) -> str:
    match ending:
        case NeedsOperator():
            return "parked"
        case Fault():
            return InternalError.code
        case Reply():
            return ending.error.code if ending.error else "ok"
