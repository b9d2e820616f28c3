"""Parks commands that further drives cannot finish, until an operator decides.

A drive is faulty when it ends by an exception that is a fault of ours. Drives that end by `outcome_pending`,
`unavailable` or an error of a provider, or during an outage of the database, are not faulty.

A drive is interrupted when its lease runs out, as when its process ended, perhaps because of the command. The process's
other drives are interrupted with it. So suspects are driven one at a time (`inbox.claim`), and a command is parked
after more interruptions than one poison message causes.
"""

from __future__ import annotations

from dataclasses import dataclass

import structlog

from libs.messaging.poison import POISON_RETURNS
from libs.persistence import inbox, parking
from libs.persistence.engine import Database

FAULTS_IN_A_ROW = 10
"""With the pauses between drives, a command is parked a minute and a half after its first fault."""
INTERRUPTIONS_IN_A_ROW = POISON_RETURNS + 10
"""Each takes a lease and the start of a process: ten minutes in all at least."""
INTERRUPTED = (
    f"{INTERRUPTIONS_IN_A_ROW} drives in a row ended without a result, the last one by the end of its lease: it may end"
    " each process that drives it."
)


class NeedsOperator(Exception):
    """Driving the command again cannot help; its message is one sentence for the operator who decides, without values
    of the command.
    """


@dataclass(frozen=True, slots=True)
class Fault:
    """A drive that ended by a fault of ours; `cause` is the name of the exception."""

    cause: str


class Parking:
    """Parks commands of one service."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._log = structlog.get_logger("commands")

    async def park(self, leased: inbox.Leased, because: str) -> None:
        """Raises LeaseLost."""
        async with inbox.fenced(self._database, leased) as connection:
            await parking.park(connection, leased, because)
        self._parked(leased, because)

    async def count(self, leased: inbox.Leased, fault: Fault, *, error: str, pause: float) -> None:
        """Count a faulty drive: the command is driven again after `pause` seconds, or parked. Raises LeaseLost."""
        because = f"{FAULTS_IN_A_ROW} drives in a row failed or were interrupted, the last one failed by {fault.cause}."
        async with inbox.fenced(self._database, leased) as connection:
            is_parked = await parking.count_fault(
                connection,
                leased,
                seconds=pause,
                error=error,
                limit=FAULTS_IN_A_ROW,
                because=because,
            )
        if is_parked:
            self._parked(leased, because)

    def _parked(self, leased: inbox.Leased, because: str) -> None:
        self._log.error(
            "command_parked",
            command=str(leased.command_id),
            operation=leased.operation,
            because=because,
        )
