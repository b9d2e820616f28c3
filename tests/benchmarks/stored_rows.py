"""The dispatcher's tables filled by the million: each in one statement, and vacuumed, as they would be by then."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Sequence
from datetime import UTC, datetime, timedelta

import asyncpg

from libs.persistence.engine import Database
from services.webhook_dispatcher.repository.partitions import Partitions
from tests.benchmarks.example_event import HEAD, TAIL, TYPE
from tests.benchmarks.subscribers import Subscriber

FILL_SECONDS = 180
"""The login's own limit is meant for what a service does."""

_EVENTS = """
    INSERT INTO event (day, id, position, tenant, customer_id, type, resource_id, sequence, body, recorded_at)
    SELECT (uuid_extract_timestamp(id) AT TIME ZONE 'UTC')::date, id, n, $1, 'customer-' || n % $2::int, $3, n, 1,
        $4::bytea || convert_to('evt_' || id, 'UTF8') || $5::bytea, uuid_extract_timestamp(id)
    FROM (
        SELECT n, uuidv7($6::interval * (n - $7::int) / $7::int) AS id FROM generate_series(1, $7::int) AS n
    ) AS numbered
"""
_DELIVERIES = """
    INSERT INTO delivery (id, subscription_id, tenant, event_day, event_id, event_type, state, due_at, created_at)
    SELECT uuidv7(due.at - now()), s.id, s.tenant, e.day, e.id, $3, 'pending', due.at, due.at
    FROM (
        SELECT n, now() + $4::interval * (n - 1 - $5::int) / $5::int AS at,
            floor(exp(random() * ln(cardinality($1::uuid[]) + 1))) AS place
        FROM generate_series(1, $5::int) AS n
    ) AS due
    JOIN unnest($1::uuid[], $2::text[]) WITH ORDINALITY AS s (id, tenant, place) USING (place)
    JOIN event e ON e.position = 1 + due.n % $6::int
"""


async def fill_events(
    database: Database, url: str, *, tenant: str, customers: int, count: int, over: timedelta
) -> None:
    """Events of one partner's customers, in turn, evenly over the time until now.

    Args:
        url: of the owner of the tables.
    """
    today = datetime.now(UTC).date()
    await Partitions(database).ensure("event", (today - timedelta(n) for n in range(over.days + 2)))
    async with connected(url) as connection:
        values = (tenant, customers, TYPE, HEAD, TAIL, over, count)
        await connection.execute(_EVENTS, *values, timeout=FILL_SECONDS)
        await connection.execute("VACUUM ANALYZE event", timeout=FILL_SECONDS)


async def fill_deliveries(
    url: str, subscribers: Sequence[Subscriber], *, count: int, events: int, over: timedelta
) -> None:
    """Deliveries of the first so many events, which have been due for up to `over`.

    As in life, a few of the subscribers have most of them: each has as many as its place says by Zipf's law.

    Args:
        url: of the owner of the tables.
    """
    async with connected(url) as connection:
        ids = [subscriber.subscription_id for subscriber in subscribers]
        tenants = [subscriber.tenant for subscriber in subscribers]
        values = (ids, tenants, TYPE, over, count, events)
        await connection.execute(_DELIVERIES, *values, timeout=FILL_SECONDS)
        await connection.execute(
            "VACUUM ANALYZE delivery, subscription, endpoint", timeout=FILL_SECONDS
        )


@contextlib.asynccontextmanager
async def connected(url: str) -> AsyncIterator[asyncpg.Connection]:
    limit = str(FILL_SECONDS * 1000)
    connection = await asyncpg.connect(url, server_settings={"statement_timeout": limit})
    try:
        yield connection
    finally:
        await connection.close()
