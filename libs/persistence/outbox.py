"""Events as rows of the transaction that made them true, relayed to the broker afterwards.

Rows leave in order of `id`. Ids of one aggregate are in commit order, since its sequence is assigned under the lock
of its row. The relay publishes with confirms and deletes what was confirmed on the connection that holds the lock:
at least once, in order per aggregate, nothing lost.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

from libs.contracts.events import Event
from libs.persistence.cursor import leadership
from libs.persistence.engine import Database

DDL = (
    """
    CREATE TABLE outbox (
        id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
        event_id text NOT NULL UNIQUE,
        type text NOT NULL,
        tenant text NOT NULL,
        customer_id text NOT NULL,
        resource_id text NOT NULL,
        sequence bigint NOT NULL,
        body bytea NOT NULL,
        recorded_at timestamptz NOT NULL DEFAULT now()
    )
    """,
)

BATCH = 256
POLL_SECONDS = 0.25


Publish = Callable[[Sequence[Event]], Awaitable[None]]
"""Returns when the broker confirmed every row; raises otherwise."""

INSERT = "INSERT INTO outbox (event_id, type, tenant, customer_id, resource_id, sequence, body)"
"""The beginning of whatever records events; what they tell of is written by the same transaction."""

_RECORD = text(
    f"{INSERT} SELECT * FROM unnest(CAST(:event_ids AS text[]), CAST(:types AS text[]),"  # noqa: S608 - constants
    " CAST(:tenants AS text[]),"
    " CAST(:customer_ids AS text[]), CAST(:resource_ids AS text[]), CAST(:sequences AS bigint[]),"
    " CAST(:bodies AS bytea[]))"
)


async def record(connection: AsyncConnection, *events: Event) -> None:
    """Write the events, in their order, in the caller's transaction."""
    if not events:
        return
    await connection.execute(
        _RECORD,
        {
            "event_ids": [event.event_id for event in events],
            "types": [event.type for event in events],
            "tenants": [event.tenant for event in events],
            "customer_ids": [event.customer_id for event in events],
            "resource_ids": [event.resource_id for event in events],
            "sequences": [event.sequence for event in events],
            "bodies": [event.body for event in events],
        },
    )


class Relay:
    """Publishes the outbox of one service. Of several replicas one relays."""

    def __init__(self, database: Database, publish: Publish) -> None:
        self._database = database
        self._publish = publish
        self._wake = asyncio.Event()

    def wake(self) -> None:
        """Say that there is something to publish, so that the poll need not be waited for."""
        self._wake.set()

    async def run_while_leading(self) -> None:
        """Relay until cancelled or until an error of the database or broker, which the caller retries."""
        async with leadership(self._database, "outbox") as connection:
            while True:
                self._wake.clear()
                while await self._relay_batch(connection):
                    pass
                try:
                    async with asyncio.timeout(POLL_SECONDS):
                        await self._wake.wait()
                except TimeoutError:
                    pass

    async def _relay_batch(self, connection: AsyncConnection) -> bool:
        """Publish one batch; true when there may be more."""
        found = await connection.execute(
            text(
                "SELECT id, event_id, type, tenant, customer_id, resource_id, sequence, body"
                " FROM outbox ORDER BY id LIMIT :batch"
            ),
            {"batch": BATCH},
        )
        rows = found.all()
        if not rows:
            return False
        await self._publish([Event(*row[1:]) for row in rows])
        await connection.execute(
            text("DELETE FROM outbox WHERE id = ANY(:ids)"), {"ids": [row.id for row in rows]}
        )
        return len(rows) == BATCH
