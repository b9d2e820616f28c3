"""The relay of an outbox: its events are published to the broker, in order of `id`.

    commit ──▶ outbox ──published, confirmed──▶ deleted
                  └─returned: no queue takes it─▶ outbox_unroutable ──published again every 30 s──▶ deleted

The relay publishes with confirms and then deletes, fenced by the term of its lease:

- at least once: an event is deleted only after the broker confirmed it; nothing is lost;
- an event can be published twice when the leader changes between the confirm and the deletion;
- in order per aggregate (`tenant`, `resource_id`), except that a leader that froze *while* it wrote a batch to its
  socket can finish writing it after its successor went on: repeated older events, which consumers know by their ids;
- an event that was returned blocks the later events of its aggregate, and no others. Those of the same batch that
  were routed have already left.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Sequence

import asyncpg
from sqlalchemy import extract, func, select

from libs.contracts.events import Event
from libs.persistence.async_engine import AsyncConnection
from libs.persistence.engine import Database
from libs.persistence.leadership import LeadershipLost, Term, leadership
from libs.persistence.tables import outbox as table
from libs.persistence.tables import outbox_unroutable

LEASE = "outbox"
BATCH = 256
POLL_SECONDS = 0.25
"""The backstop of the signal after a commit: for events that other processes recorded."""
QUIET_POLL_SECONDS = 1.0
"""The same while no other process records events. Four polls a second were half of what an idle service asked."""
OTHERS_SECONDS = 10.0
"""For how long other processes are expected to record more events: since the term began, and since a poll found one."""
APART_SECONDS = 0.1
"""Time from the beginning of a batch that was not full to the next one. An event of an idle service leaves at once; a
busy service relays ten batches a second, not one for each commit.
"""
UNROUTABLE_SECONDS = 30.0
"""Between two tries to publish unroutable events."""

Publish = Callable[[Sequence[Event]], Awaitable[Collection[str]]]
"""Returns when the broker has confirmed every event: the ids of those that it returned, since no queue takes them.
Raises otherwise.
"""

_READ = """
    SELECT id, event_id, type, tenant, customer_id, resource_id, sequence, body, request_id, trace_context, EXISTS (
        SELECT 1 FROM outbox_unroutable u WHERE u.tenant = o.tenant AND u.resource_id = o.resource_id
    ) AS is_blocked
    FROM outbox o ORDER BY id LIMIT $1
    """

_DELETE = """
    WITH fence AS (SELECT 1 FROM leader_lease WHERE name = $1 AND term = $2 AND holder = $3 FOR KEY SHARE)
    DELETE FROM outbox WHERE id = ANY($4::bigint[]) AND EXISTS (SELECT 1 FROM fence)
    """

_SET_ASIDE = """
    WITH fence AS (SELECT 1 FROM leader_lease WHERE name = $1 AND term = $2 AND holder = $3 FOR KEY SHARE),
    taken AS (
        DELETE FROM outbox WHERE id = ANY($4::bigint[]) AND EXISTS (SELECT 1 FROM fence)
        RETURNING id, event_id, type, tenant, customer_id, resource_id, sequence, body, recorded_at, request_id,
            trace_context
    )
    INSERT INTO outbox_unroutable (id, event_id, type, tenant, customer_id, resource_id, sequence, body, recorded_at,
        request_id, trace_context)
    SELECT * FROM taken
    """

_READ_UNROUTABLE = """
    SELECT DISTINCT ON (tenant, resource_id) id, event_id, type, tenant, customer_id, resource_id, sequence, body,
        request_id, trace_context
    FROM outbox_unroutable
    WHERE (tenant, resource_id) > ($1::text, $2::text) ORDER BY tenant, resource_id, id LIMIT $3
    """

_DELETE_UNROUTABLE = """
    WITH fence AS (SELECT 1 FROM leader_lease WHERE name = $1 AND term = $2 AND holder = $3 FOR KEY SHARE)
    DELETE FROM outbox_unroutable WHERE id = ANY($4::bigint[]) AND EXISTS (SELECT 1 FROM fence)
    """

_START = ("", "")

_COUNT_UNROUTABLE = select(func.count()).select_from(outbox_unroutable)
_OLDEST_SECONDS = select(
    func.coalesce(
        select(extract("epoch", func.clock_timestamp() - table.c.recorded_at))
        .order_by(table.c.id)
        .limit(1)
        .scalar_subquery(),
        0,
    )
)


class Relay:
    """Publishes the outbox of one service. Of several replicas one relays.

    Args:
        progress: called after each round, and each time another process was seen to lead.
    """

    def __init__(
        self, database: Database, publish: Publish, progress: Callable[[], None] = lambda: None
    ) -> None:
        self._database = database
        self._publish = publish
        self._progress = progress
        self._not_before = 0.0
        """When the next round begins at the earliest, by the loop's clock."""
        self._others_until = 0.0
        """Until when other processes are expected to record events, by the loop's clock."""
        self._unroutable_at = 0.0
        self._unroutable_after = _START
        """The aggregate up to which unroutable events were tried, so that each aggregate gets its turn."""

    async def run_while_leading(self) -> None:
        """Relay until cancelled or until an error of the database or broker, which the caller retries."""
        loop = asyncio.get_running_loop()
        async with leadership(self._database, LEASE, standing_by=self._progress) as term:
            self._unroutable_at = loop.time()
            self._others_until = loop.time() + OTHERS_SECONDS
            is_poll = True
            while True:
                self._database.events_recorded.clear()
                # Before the batch: what the batch sets aside was tried a moment ago.
                if loop.time() >= self._unroutable_at:
                    await self._try_unroutable(term)
                count = await self._relay_batch(term)
                if is_poll and count:
                    self._others_until = loop.time() + OTHERS_SECONDS
                self._progress()
                is_poll = count < BATCH and not await self._until_recorded()

    async def _until_recorded(self) -> bool:
        """Whether this process recorded events; otherwise it is time to poll."""
        now = asyncio.get_running_loop().time()
        seconds = POLL_SECONDS
        if now >= self._others_until:
            # Unroutable events that are due follow each other from poll to poll.
            seconds = min(QUIET_POLL_SECONDS, max(POLL_SECONDS, self._unroutable_at - now))
        try:
            async with asyncio.timeout(seconds):
                await self._database.events_recorded.wait()
        except TimeoutError:
            return False
        await asyncio.sleep(self._not_before - asyncio.get_running_loop().time())
        return True

    async def _relay_batch(self, term: Term) -> int:
        """Publish one batch; how many events there were."""
        begun = asyncio.get_running_loop().time()
        async with self._database.driver() as connection:
            rows = await connection.fetch(_READ, BATCH)
        if not rows:
            return 0
        self._not_before = begun + APART_SECONDS
        free = [row for row in rows if not row["is_blocked"]]
        returned = await self._publish_rows(term, free)
        gone = [row["id"] for row in free if row["event_id"] not in returned]
        kept = [row["id"] for row in rows if row["is_blocked"] or row["event_id"] in returned]
        async with self._database.driver() as connection:
            if kept:
                await _change(connection, _SET_ASIDE, term, kept)
            if gone:
                await _change(connection, _DELETE, term, gone)
        return len(rows)

    async def _try_unroutable(self, term: Term) -> None:
        """Publish the first event of some aggregates again. While queues take them, the next ones follow at once."""
        async with self._database.driver() as connection:
            rows = await connection.fetch(_READ_UNROUTABLE, *self._unroutable_after, BATCH)
        returned = await self._publish_rows(term, rows)
        if gone := [row["id"] for row in rows if row["event_id"] not in returned]:
            async with self._database.driver() as connection:
                await _change(connection, _DELETE_UNROUTABLE, term, gone)
        else:
            self._unroutable_at = asyncio.get_running_loop().time() + UNROUTABLE_SECONDS
        more = len(rows) == BATCH
        self._unroutable_after = (rows[-1]["tenant"], rows[-1]["resource_id"]) if more else _START

    async def _publish_rows(self, term: Term, rows: Sequence[asyncpg.Record]) -> Collection[str]:
        if not rows:
            return ()
        term.require_live()
        return await self._publish(
            [
                Event(
                    event_id=row["event_id"],
                    type=row["type"],
                    tenant=row["tenant"],
                    customer_id=row["customer_id"],
                    resource_id=row["resource_id"],
                    sequence=row["sequence"],
                    body=row["body"],
                    request_id=row["request_id"],
                    trace=row["trace_context"],
                )
                for row in rows
            ]
        )


async def _change(
    connection: asyncpg.Connection, statement: str, term: Term, ids: Sequence[int]
) -> None:
    """Execute a fenced statement.

    Raises:
        LeadershipLost: it changed nothing, or less: another process has relayed these events.
    """
    status: str = await connection.execute(statement, *term.token, ids)
    if int(status.rpartition(" ")[2]) != len(ids):
        raise LeadershipLost(term.name)


async def count_unroutable(connection: AsyncConnection) -> int:
    """Events that no queue takes, and those that they block."""
    return int((await connection.execute(_COUNT_UNROUTABLE)).scalar_one())


async def oldest_seconds(connection: AsyncConnection) -> float:
    """Age of the oldest event that waits to be published for the first time; 0 when none does."""
    return float((await connection.execute(_OLDEST_SECONDS)).scalar_one())
