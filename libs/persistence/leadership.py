"""Leadership of a task that one process of a service does at a time: a lease row with a fencing token.

    async with leadership(database, "outbox") as term:
        async with database.transaction() as connection:
            await fence(connection, term)
            ...  # committed only while no other process has taken the lease

The time is the database's, so that clocks of processes do not matter. Each election increments the *term* of the
lease, the fencing token. A write of the leader locks the lease row and compares the term in its own transaction: a
process that froze, lost its lease and goes on afterwards cannot commit. A write that is a single statement has the
fence in its WITH, takes `Term.token` as $1 to $3, and does its work `WHERE EXISTS (SELECT 1 FROM fence)`:

    fence AS (SELECT 1 FROM leader_lease WHERE name = $1 AND term = $2 AND holder = $3 FOR KEY SHARE)

Lock modes: a fence takes FOR KEY SHARE. A renewal changes no key column, so it does not wait for a fence. Taking the
lease changes the term, which is part of a unique key, so it waits for the fenced transactions of the term before.
PostgreSQL ends those of a process that is gone after `idle_locks.LOCKED_IDLE_SECONDS`.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from uuid import UUID, uuid4

import asyncpg
import structlog
from sqlalchemy import bindparam, select

from libs.persistence.async_engine import AsyncConnection
from libs.persistence.availability import is_away
from libs.persistence.engine import Database
from libs.persistence.idle_locks import ENDED_WHEN_IDLE
from libs.persistence.tables import leader_lease as table

LEASE_SECONDS = 5.0
"""A leader that vanished or froze is replaced after this and one election period. A shorter lease would be lost when
the database stalls for the length of two statements; a longer one delays events when a leader is gone.
"""
RENEWAL_SECONDS = 1.25
ELECTION_SECONDS = 1.0
STATEMENT_SECONDS = 1.5
"""The timeout of an election, a renewal or a release: a lease outlives two renewals that end by it."""
RELEASE_SECONDS = 2.0
RETRY_SECONDS = 0.25
"""Before a renewal is tried on another connection."""

# A lease that ends later than any process sets it was written before the database's clock was set back. Its holder may
# be gone, and would be followed only after as much time. A holder that lives loses its term, as by any other election.
# Twice the length: the clock may be corrected by a little, and another release may set longer leases.
_TAKE = """
    INSERT INTO leader_lease AS lease (name, term, holder, lease_until)
    SELECT $1::text, 1, $2::uuid, clock_timestamp() + make_interval(secs => $3)
    WHERE NOT EXISTS (SELECT 1 FROM leader_lease WHERE name = $1::text
        AND lease_until BETWEEN clock_timestamp() AND clock_timestamp() + make_interval(secs => 2 * $3))
    ON CONFLICT (name) DO UPDATE
    SET term = lease.term + 1, holder = $2::uuid, lease_until = clock_timestamp() + make_interval(secs => $3)
    WHERE lease.lease_until NOT BETWEEN clock_timestamp() AND clock_timestamp() + make_interval(secs => 2 * $3)
    RETURNING term
    """
_RENEW = """
    UPDATE leader_lease SET lease_until = clock_timestamp() + make_interval(secs => $3)
    WHERE name = $1 AND term = $2 AND holder = $4 RETURNING term
    """
_RELEASE = """
    UPDATE leader_lease SET lease_until = '-infinity' WHERE name = $1 AND term = $2 AND holder = $3
    """
_FENCE = (
    select(ENDED_WHEN_IDLE)
    .select_from(table)
    .where(
        table.c.name == bindparam("lease"),
        table.c.term == bindparam("number"),
        table.c.holder == bindparam("held_by"),
    )
    .with_for_update(read=True, key_share=True)
)


class LeadershipLost(Exception):
    """Another process may lead: the lease was not renewed in time, or its term is over."""


@dataclass(frozen=True, slots=True)
class Term:
    """One term of the lease `name`. `number` is the fencing token.

    Args:
        holder: unique to this term: a database that was restored to an earlier state issues a number again.
        limit: cancels the body of `leadership` when the lease was not renewed in time.
    """

    name: str
    number: int
    holder: UUID
    limit: asyncio.Timeout

    @property
    def token(self) -> tuple[str, int, UUID]:
        return self.name, self.number, self.holder

    def require_live(self) -> None:
        """Called directly before an effect that no transaction can fence.

        Raises:
            LeadershipLost: by this process's monotonic clock the lease may have ended.
        """
        until = self.limit.when()
        if until is None or asyncio.get_running_loop().time() >= until:
            raise LeadershipLost(self.name)


def _nothing() -> None:
    pass


@asynccontextmanager
async def leadership(
    database: Database, name: str, *, standing_by: Callable[[], None] = _nothing
) -> AsyncIterator[Term]:
    """Wait until this process holds the lease `name` in its schema; renew it during the body.

    The body is cancelled when the lease could not be renewed in time. The lease is released at the end of the body,
    however it ends, so that the next process need not wait for its expiry.

    Args:
        standing_by: called whenever another process was seen to hold a live lease.

    Raises:
        LeadershipLost: from the body, which was cancelled.
        What the database raises, while there is no lease yet.
    """
    loop = asyncio.get_running_loop()
    holder = uuid4()
    while True:
        asked_at = loop.time()
        number = await _take(database, name, holder)
        if number is not None:
            break
        standing_by()
        await asyncio.sleep(ELECTION_SECONDS)
    term = Term(name, number, holder, asyncio.timeout_at(asked_at + LEASE_SECONDS))
    renewal = asyncio.create_task(_renew_for_ever(database, term), name=f"lease:{name}")
    try:
        async with term.limit:
            yield term
    except TimeoutError:
        if term.limit.expired():
            raise LeadershipLost(name) from None
        raise
    finally:
        renewal.cancel()
        # A task of its own: a cancellation that arrives meanwhile does not keep the lease from being released.
        ending = asyncio.create_task(_end(database, term, renewal), name=f"lease-release:{name}")
        await asyncio.wait({ending})


async def fence(connection: AsyncConnection, term: Term) -> None:
    """Let the caller's transaction commit only while its term lasts: the first statement of the transaction.

    Raises:
        LeadershipLost: another process has taken the lease.
    """
    found = await connection.execute(
        _FENCE,
        {"lease": term.name, "number": term.number, "held_by": term.holder},
    )
    if found.first() is None:
        raise LeadershipLost(term.name)


async def _take(database: Database, name: str, holder: UUID) -> int | None:
    """The number of the new term; None while another process holds the lease."""
    async with database.driver() as connection:
        number: int | None = await connection.fetchval(
            _TAKE, name, holder, LEASE_SECONDS, timeout=STATEMENT_SECONDS
        )
    return number


async def _renew_for_ever(database: Database, term: Term) -> None:
    """Move the term's `limit` with each renewal, until the term is over.

    One connection is reserved for the renewals, so that none waits while the pool is busy.
    """
    log = structlog.get_logger("leadership")
    while not term.limit.expired():
        try:
            async with database.driver(watched=False) as connection:
                while await _renew(connection, term):
                    pass
            return
        except Exception as error:
            if not is_away(error):
                _end_now(term.limit)
                raise
            log.warning(
                "lease_not_renewed", lease=term.name, term=term.number, error=type(error).__name__
            )
        await asyncio.sleep(RETRY_SECONDS)


async def _renew(connection: asyncpg.Connection, term: Term) -> bool:
    """Wait for `RENEWAL_SECONDS` and renew the lease once. True while the term goes on."""
    loop = asyncio.get_running_loop()
    await asyncio.sleep(RENEWAL_SECONDS)
    asked_at = loop.time()
    try:
        renewed = await connection.fetchval(
            _RENEW, term.name, term.number, LEASE_SECONDS, term.holder, timeout=STATEMENT_SECONDS
        )
    except TimeoutError:
        # Closing it politely would take as long as the rest of the lease.
        connection.terminate()
        raise
    if renewed is None:
        structlog.get_logger("leadership").warning("lease_taken", lease=term.name, term=term.number)
        _end_now(term.limit)
        return False
    if term.limit.expired():
        return False
    term.limit.reschedule(asked_at + LEASE_SECONDS)
    return True


def _end_now(limit: asyncio.Timeout) -> None:
    if not limit.expired():
        limit.reschedule(asyncio.get_running_loop().time())


async def _end(database: Database, term: Term, renewal: asyncio.Task[None]) -> None:
    """Release the lease, if it is still of this term. Raises nothing: a lease that is not released expires.

    Args:
        renewal: the task that renewed the lease, cancelled already.
    """
    log = structlog.get_logger("leadership")
    await asyncio.wait({renewal})
    if not renewal.cancelled() and (failure := renewal.exception()) is not None:
        log.error("lease_renewal_failed", lease=term.name, term=term.number, exc_info=failure)
    try:
        async with asyncio.timeout(RELEASE_SECONDS), database.driver() as connection:
            await connection.execute(_RELEASE, *term.token, timeout=STATEMENT_SECONDS)
    except Exception as error:
        log.warning(
            "lease_not_released", lease=term.name, term=term.number, error=type(error).__name__
        )
