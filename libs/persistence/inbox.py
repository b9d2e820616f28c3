"""Accepted commands: PostgreSQL owns a command from the commit of its row until it is final.

    accept ──▶ open, leased ──drive──▶ finished (reply stored)
                 │    ▲     ──────────▶ forgetting ──▶ forgotten (see `forgetting`)
                 │    │     ──────────▶ parked (see `parking`)
                 ▼    │
          lease expired or due again: claimed by the sweeper of any replica
          (a suspect, whose drives may end their processes: alone)

Commands with one ordering key are driven one at a time, in the order in which they were recorded. A parked command has
left that order, as one may whose effect is made (`leave_order`); a retried one joins it at the end. A driver works
under a lease, whose id is the fencing token of its commits: a stalled driver that was replaced cannot commit anything
more.

`inbox_acceptance` records commands, `leased_writes` finishes them; here they are leased and driven.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta
from types import MappingProxyType
from uuid import UUID

import asyncpg
from sqlalchemy import Interval, and_, bindparam, func, null, select, update

from libs.persistence.async_engine import AsyncConnection
from libs.persistence.engine import Database
from libs.persistence.idle_locks import ENDED_WHEN_IDLE
from libs.persistence.tables import inbox as table

LEASE_SECONDS = 10.0
"""The default. A driver renews its leases several times in this time."""
LONGEST_LEASE_SECONDS = 300.0
"""That the settings of a service may choose."""
SUSPECT_INTERRUPTIONS = 5
"""After so many interruptions in a row a command is a suspect, as messages are in `libs.messaging.poison`."""

_NONE_DRIVEN: Mapping[str, int] = MappingProxyType({})


class LeaseLost(Exception):
    """Another process drives the command now, or it is final: the former driver commits nothing more for it."""


@dataclass(frozen=True, slots=True)
class Leased:
    """A command that this process may drive, until the lease runs out."""

    command_id: UUID
    operation: str
    message_id: str
    request_id: str
    principal: bytes
    body: bytes
    reply_to: str | None
    deadline: float
    attempts: int
    lease: UUID
    tenant: str
    """Empty for a command of an operator or of a service, and for one that the release before recorded."""
    forgetting: bool = False
    """Its caller may have been told that nothing was started: it is not driven (see `forgetting`)."""
    trace: str | None = None
    """The span that sent it, as `libs.tracing` has it."""
    interruptions: int = 0
    """0 where its last drive ended. Where that one was interrupted (its lease ran out, as when its process died): how
    many in a row, that one the last, were interrupted or ended by a fault of ours.
    """

    @property
    def is_suspect(self) -> bool:
        """Its drives may end their processes."""
        return self.interruptions >= SUSPECT_INTERRUPTIONS


# `statement_timestamp()`, unlike `clock_timestamp()`, is stable, so that the index on due commands is used. The earlier
# commands of a key are looked up by `inbox_queue`: see `tables.queue_index`. A lease that ends later than any process
# may set it was written before the database's clock was set back, and its holder may be gone: it is taken. Twice the
# longest: the clock may be corrected by a little. The length that this process sets tells nothing about others' leases.
# A lease that is still there was neither released nor ended by its drive. One suspect is taken, at random: what was
# driven beside a deadly command is a suspect like it, and gets its turn between two deaths.
# Of a tenant those due first are taken, up to its limit, and the suspect on top: if it counted, the one at random could
# be beyond the limit, and nothing would be taken. Tenants at their limits ($7) are passed over.
_CLAIM = """
    WITH due AS (
        SELECT command_id, tenant, due_at, CASE WHEN lease IS NULL THEN 0 ELSE faults + 1 END AS interruptions
        FROM inbox i
        WHERE finished_at IS NULL AND parked_at IS NULL AND due_at <= statement_timestamp()
            AND (lease_until IS NULL OR lease_until NOT BETWEEN statement_timestamp()
                AND statement_timestamp() + make_interval(secs => 2 * $3::double precision))
            AND (ordering_key IS NULL OR NOT EXISTS (
                SELECT 1 FROM inbox e WHERE e.ordering_key = i.ordering_key
                    AND coalesce(e.finished_at, e.parked_at) IS NULL AND e.sequence < i.sequence))
            AND ($5::boolean OR lease IS NULL OR faults + 1 < $4)
            AND tenant <> ALL ($7::text[])
        ORDER BY due_at LIMIT $1 FOR UPDATE SKIP LOCKED
    ), placed AS (
        SELECT due.*, row_number() OVER (PARTITION BY interruptions >= $4 ORDER BY random()) AS place,
            row_number() OVER (PARTITION BY tenant, interruptions >= $4 ORDER BY due_at) + coalesce(driven.count, 0)
                AS of_tenant
        FROM due LEFT JOIN unnest($8::text[], $9::integer[]) AS driven (tenant, count) USING (tenant)
    )
    UPDATE inbox i SET attempts = attempts + 1, faults = greatest(faults, interruptions), lease = gen_random_uuid(),
        lease_until = clock_timestamp() + make_interval(secs => $2)
    FROM placed WHERE i.command_id = placed.command_id
        AND CASE WHEN interruptions < $4 THEN of_tenant <= $6 ELSE place = 1 END
    RETURNING i.command_id, i.operation, i.message_id, i.request_id, i.principal, i.body, i.reply_to, i.deadline,
        i.attempts, i.lease, i.tenant, i.forgetting, i.trace_context, interruptions
    """

# Rows are locked in the order of their ids, as in all statements on several commands.
# A transaction of a command is under way where its row is locked. Waiting for it, all others would lose their leases.
_RENEW = """
    WITH held AS (
        SELECT i.command_id FROM inbox i
        JOIN unnest($1::uuid[], $2::uuid[]) AS l (id, lease) ON i.command_id = l.id AND i.lease = l.lease
        WHERE finished_at IS NULL
    ), leased AS (
        SELECT i.command_id FROM inbox i
        JOIN unnest($1::uuid[], $2::uuid[]) AS l (id, lease) ON i.command_id = l.id AND i.lease = l.lease
        WHERE finished_at IS NULL ORDER BY i.command_id FOR NO KEY UPDATE OF i SKIP LOCKED
    ), renewed AS (
        UPDATE inbox i SET lease_until = clock_timestamp() + make_interval(secs => $3)
        FROM leased WHERE i.command_id = leased.command_id
    )
    SELECT command_id FROM held
    """
_RELEASE = """
    WITH leased AS (
        SELECT i.command_id, l.pause FROM inbox i
        JOIN unnest($1::uuid[], $2::uuid[], $3::float8[]) AS l (id, lease, pause)
            ON i.command_id = l.id AND i.lease = l.lease
        WHERE finished_at IS NULL ORDER BY i.command_id FOR NO KEY UPDATE OF i
    )
    UPDATE inbox i SET lease = NULL, lease_until = NULL,
        due_at = CASE WHEN pause > 0 THEN greatest(due_at, clock_timestamp() + make_interval(secs => pause))
            ELSE due_at END
    FROM leased WHERE i.command_id = leased.command_id
    """

_IS_LEASED = and_(
    table.c.command_id == bindparam("id"),
    table.c.lease == bindparam("by_lease"),
    table.c.finished_at.is_(None),
)
_FENCE = (
    select(table.c.command_id, ENDED_WHEN_IDLE).where(_IS_LEASED).with_for_update(key_share=True)
)
_CHANGE = update(table).where(table.c.command_id == bindparam("id"))
_POSTPONE = _CHANGE.values(
    lease=null(),
    lease_until=null(),
    last_error=bindparam("error"),
    faults=0,
    due_at=func.clock_timestamp() + bindparam("pause", type_=Interval),
)


async def claim(
    connection: asyncpg.Connection,
    limit: int,
    lease_seconds: float = LEASE_SECONDS,
    *,
    with_suspect: bool = True,
    limit_of_tenant: int | None = None,
    driven: Mapping[str, int] = _NONE_DRIVEN,
) -> list[Leased]:
    """Lease up to `limit` commands that are due, neither leased nor parked, and first of their key.

    Where those due first are more of a tenant than its limit allows, fewer than `limit` are leased, and others may be
    due: a further claim, with that tenant at its limit, finds them.

    Args:
        with_suspect: one suspect may be among them; False: none.
        limit_of_tenant: how many commands of one tenant may be driven at most; None: as many as `limit`.
        driven: how many are driven already, by tenant. A tenant at its limit is passed over.
    """
    of_tenant = limit if limit_of_tenant is None else limit_of_tenant
    rows = await connection.fetch(
        _CLAIM,
        limit,
        lease_seconds,
        LONGEST_LEASE_SECONDS,
        SUSPECT_INTERRUPTIONS,
        with_suspect,
        of_tenant,
        [tenant for tenant, count in driven.items() if count >= of_tenant],
        list(driven.keys()),
        list(driven.values()),
    )
    return [Leased(*row) for row in rows]


async def renew(
    connection: asyncpg.Connection, commands: Sequence[Leased], lease_seconds: float = LEASE_SECONDS
) -> set[UUID]:
    """Renew the leases; the ids of the commands whose leases have not been lost. A command of which a transaction is
    under way keeps the lease that it has.
    """
    rows = await connection.fetch(
        _RENEW,
        [command.command_id for command in commands],
        [command.lease for command in commands],
        lease_seconds,
    )
    return {row["command_id"] for row in rows}


@asynccontextmanager
async def fenced(database: Database, command: Leased) -> AsyncIterator[AsyncConnection]:
    """A transaction that commits only while the command is leased to this driver. PostgreSQL ends it, with the locks
    that it has taken, when nothing is sent in it for `idle_locks.LOCKED_IDLE_SECONDS`.

    Raises:
        LeaseLost
    """
    async with database.transaction() as connection:
        leased = await connection.execute(
            _FENCE, {"id": command.command_id, "by_lease": command.lease}
        )
        if leased.first() is None:
            raise LeaseLost(str(command.command_id))
        yield connection


async def postpone(
    connection: AsyncConnection, command: Leased, *, seconds: float, error: str
) -> None:
    """Release the lease; the command is due again after `seconds`, and its faults are counted anew.

    Called in a fenced transaction.
    """
    await connection.execute(
        _POSTPONE,
        {"id": command.command_id, "pause": timedelta(seconds=seconds), "error": error},
    )


async def release(
    connection: asyncpg.Connection,
    commands: Sequence[Leased],
    pause_seconds: Callable[[Leased], float] = lambda _: 0.0,
) -> None:
    """Release leases of drives that are not interrupted but given up: any process may claim the commands after their
    pauses.
    """
    await connection.execute(
        _RELEASE,
        [command.command_id for command in commands],
        [command.lease for command in commands],
        [pause_seconds(command) for command in commands],
    )
