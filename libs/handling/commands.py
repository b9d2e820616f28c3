"""Carrying out the commands of a service: accept, ack, drive.

A command is recorded, and so acked, first; then it is driven under a lease by a handler that may run again from its
start at any point. Its caller is answered when it is final, or shortly before the deadline that it is still
pending.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from typing import Any, TypeVar
from uuid import UUID

from sqlalchemy.ext.asyncio import AsyncConnection

from libs.contracts.principal import Principal
from libs.contracts.result import Result
from libs.contracts.sensitive import Sealer
from libs.handling.acceptance import Acceptance, Ordering
from libs.handling.answers import CommandAnswers
from libs.handling.driving import Driver, keep_house
from libs.handling.group_commit import GroupCommit, Write
from libs.handling.parking import NeedsOperator
from libs.handling.queries import check_handlers
from libs.handling.running import CommandRunner
from libs.messaging.broker import Broker
from libs.messaging.command_consumer import CommandConsumer
from libs.messaging.replier import Replier
from libs.persistence import inbox
from libs.persistence.engine import Database
from libs.persistence.leased_writes import LeasedValue
from libs.runtime.process import Process

__all__ = ["CommandHandler", "Drive", "NeedsOperator", "run_commands"]

STOP_SECONDS = 5.0

ValueT = TypeVar("ValueT")
AnswerT = TypeVar("AnswerT")


@dataclass(frozen=True, slots=True)
class Drive:
    """One drive of one command.

    Args:
        deadline: until when the caller waits, in Unix seconds; 0 when nobody does.
        attempt: 1 at first; more when an earlier drive did not come to the end.
        made_due: to be called after a commit that made another command due, which is then driven at once.
    """

    command_id: UUID
    operation: str
    principal: Principal
    request_id: str
    deadline: float
    attempt: int
    database: Database
    group_commit: GroupCommit
    lease: inbox.Leased
    made_due: Callable[[], None] = lambda: None

    async def commit(self, write: Write[LeasedValue[ValueT], AnswerT], value: ValueT) -> AnswerT:
        """Commit a step, together with those that other drives commit at the moment; raises LeaseLost as below."""
        return await self.group_commit.commit(write, LeasedValue(self.lease, value))

    def transaction(self) -> AbstractAsyncContextManager[AsyncConnection]:
        """A transaction that commits only while this process drives the command; raises LeaseLost otherwise."""
        return inbox.fenced(self.database, self.lease)


CommandHandler = Callable[[Drive, Any], Awaitable[Result]]
"""Takes the validated command of a row, or the plain body of an internal command.

Returns the result, or raises:

- An error of 4xx is the final answer.
- `Unavailable` and `Invalid` say that nothing was started: the command is forgotten once its caller is told so (see
  `forgetting`); a caller that was told that it is pending, or cannot be told, gets what comes of driving it again
  (`Unavailable`) or the answer stored (`Invalid`).
- `OutcomePending` and errors of providers (502, 504) have it driven again later.
- `NeedsOperator` has it parked at once: driving it again cannot help.
- Any other exception is a fault of ours: it is driven again later, and parked after several such drives in a row.

While a command goes on or is parked, its caller is only ever told that it is pending.
"""


@asynccontextmanager
async def run_commands(
    process: Process,
    sealer: Sealer,
    broker: Broker,
    database: Database,
    handlers: Mapping[str, CommandHandler],
    ordering: Ordering | None,
    keep_for_ever: frozenset[str] = frozenset(),
    lease_seconds: float = inbox.LEASE_SECONDS,
    unordered: frozenset[str] = frozenset(),
) -> AsyncIterator[Driver]:
    """Accept and drive the service's commands during the body, once the broker is started.

    Args:
        handlers: by operation, for every command of the service's rows and for its internal commands.
        ordering: None when no command has to wait for another.
        keep_for_ever: operations whose replies are never purged.
        lease_seconds: after a crash, another process goes on with a command when so long has passed.
        unordered: operations of which no command has an ordering key: `ordering` is not called for them.

    Raises:
        RuntimeError: a row has no handler.
    """
    check_handlers(process.service, handlers, queries=False)
    replier = Replier()
    answers = CommandAnswers(replier)
    group_commit = GroupCommit(database)

    async def handle(leased: inbox.Leased, principal: Principal, command: Any) -> Result:
        drive = Drive(
            command_id=leased.command_id,
            operation=leased.operation,
            principal=principal,
            request_id=leased.request_id,
            deadline=leased.deadline,
            attempt=leased.attempts,
            database=database,
            group_commit=group_commit,
            lease=leased,
            made_due=driver.wake,
        )
        return await handlers[leased.operation](drive, command)

    runner = CommandRunner(process.service, database, group_commit, sealer, answers, handle)
    driver = Driver(
        process.service, database, runner, lease_seconds, is_ordered=ordering is not None
    )
    acceptance = Acceptance(
        process.service,
        database,
        answers,
        driver,
        group_commit,
        ordering,
        unordered,
        keep_for_ever,
    )
    consumer = CommandConsumer(process.service, acceptance.accept, database.ping)
    broker.add(replier)
    broker.add(consumer)
    async with (
        process.background("command-sweeper", driver.sweep()),
        process.background("command-heartbeat", driver.renew_leases()),
        process.background("command-housekeeping", keep_house(database)),
    ):
        yield driver
        await consumer.stop(STOP_SECONDS)
        await driver.stop(STOP_SECONDS)
        answers.close()
