"""Carrying out the commands of a service: accept, ack, drive.

A command is recorded, then its message is acked, then a handler drives it under a lease. The handler may run again
from its start after a crash at any point. The caller gets the final reply, or `outcome_pending` shortly before its
deadline.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import Any, TypeVar
from uuid import UUID

from libs.contracts.principal import Principal
from libs.contracts.result import Result
from libs.handling import clock
from libs.handling.acceptance import Acceptance, Ordering
from libs.handling.answers import CommandAnswers
from libs.handling.audit_head import log_head_for_ever
from libs.handling.auditing import audit_commands_for_ever
from libs.handling.driving import Driver
from libs.handling.group_commit import GroupCommit, Write
from libs.handling.housekeeping import keep_house
from libs.handling.payloads import prepare
from libs.handling.running import CommandRunner
from libs.messaging.broker import Broker
from libs.messaging.command_consumer import CommandConsumer
from libs.messaging.message_sealer import MessageSealer
from libs.messaging.replier import Replier
from libs.persistence import inbox
from libs.persistence.async_engine import AsyncConnection
from libs.persistence.engine import Database
from libs.persistence.leased_writes import LeasedValue
from libs.runtime.process import Process

STOP_SECONDS = 5.0

ValueT = TypeVar("ValueT")
AnswerT = TypeVar("AnswerT")


@dataclass(frozen=True, slots=True)
class Drive:
    """One drive of one command.

    Args:
        deadline: of the caller, in Unix seconds; 0 without one.
        attempt: 1 for the first drive.
        made_due: called after a commit that made another command due, which is then driven at once.
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
        """Commit a step by group commit. Raises LeaseLost."""
        return await self.group_commit.commit(write, LeasedValue(self.lease, value))

    def transaction(self) -> AbstractAsyncContextManager[AsyncConnection]:
        """A transaction that commits only while the command is leased to this process. Raises LeaseLost."""
        return inbox.fenced(self.database, self.lease)


CommandHandler = Callable[[Drive, Any], Awaitable[Result]]
"""Takes the validated command of a row, or the plain body of an internal command.

Returns the result, or raises:

| exception | consequence |
|---|---|
| error of 4xx other than `ApproverIsInitiator` and `Invalid` | the final reply |
| `Unavailable` | nothing was started: the command is forgotten (see `forgetting`), or else driven again |
| `ApproverIsInitiator`, `Invalid` | nothing was started: forgotten, or else this is the final reply |
| `OutcomePending`, errors of providers (502, 504) | driven again later |
| `OutcomeAwaited` | driven again when what it waits for makes it due, or after a pause of up to ten minutes |
| `NeedsOperator`, `CannotOpen` | parked at once |
| any other | a fault of ours: driven again later, parked after several such drives in a row |
| nothing, since its process ends | driven again once its lease is over, parked after many such drives in a row |

A command is forgotten only if its caller gets this reply and was not answered `outcome_pending` before. While a command
is driven again or parked, its caller is answered `outcome_pending` only.
"""


@asynccontextmanager
async def run_commands(
    process: Process,
    sealer: MessageSealer,
    broker: Broker,
    database: Database,
    handlers: Mapping[str, CommandHandler],
    ordering: Ordering | None,
    keep_for_ever: frozenset[str] = frozenset(),
    lease_seconds: float = inbox.LEASE_SECONDS,
    unordered: frozenset[str] = frozenset(),
    hastens: bool = True,
) -> AsyncIterator[Driver]:
    """Accept and drive the service's commands during the body, once the broker is started.

    Args:
        handlers: by operation, for every command of the service's rows and for its internal commands.
        ordering: None when no command has to wait for another.
        keep_for_ever: operations whose replies are never purged, nor bodies without sensitive fields.
        lease_seconds: the length of a lease. After a crash, another process claims the command once its lease is over.
        unordered: operations of which no command has an ordering key: `ordering` is not called for them.
        hastens: see `keep_house`.

    Raises:
        RuntimeError: a row has no handler.
    """
    prepare(process.service, handlers, queries=False)
    replier = Replier(process.service)
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

    runner = CommandRunner(
        process.service, database, group_commit, sealer, answers, handle, keep_for_ever
    )
    driver = Driver(
        process.service, database, runner, lease_seconds, is_ordered=ordering is not None
    )
    acceptance = Acceptance(
        process.service,
        database,
        sealer,
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
        process.background(
            "command-housekeeping",
            keep_house(database, consumer.caught_up_to, hastens=hastens),
        ),
        process.background("audit", audit_commands_for_ever(database)),
        process.background("audit-head", log_head_for_ever(database)),
        process.background("clock", clock.measure_for_ever(database)),
        AsyncExitStack() as stopping,
    ):
        # The last is called first; all also where a later part does not start: commands may have been claimed already.
        stopping.callback(answers.close)
        stopping.push_async_callback(driver.stop, STOP_SECONDS)
        stopping.push_async_callback(consumer.stop, STOP_SECONDS)
        yield driver
