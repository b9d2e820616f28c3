"""The dispatcher's tables, which a test changes as if time had passed."""

from __future__ import annotations

import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any

import asyncpg

from tests.support.infrastructure import Environment

WAITS = timedelta(days=1000)
"""By which `retries_wait` lengthens each pause between two attempts."""
_RETRIES_WAIT = f"""
CREATE FUNCTION webhook_dispatcher.retries_wait() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
    NEW.due_at := NEW.due_at + interval '{WAITS.days} days';
    RETURN NEW;
END $$;
CREATE TRIGGER retries_wait BEFORE UPDATE ON webhook_dispatcher.delivery FOR EACH ROW
    WHEN (NEW.attempts_made > OLD.attempts_made) EXECUTE FUNCTION webhook_dispatcher.retries_wait()
"""
_RETRIES_COME = "DROP FUNCTION webhook_dispatcher.retries_wait() CASCADE"


class DispatcherTables:
    def __init__(self, connection: Any) -> None:
        self._connection = connection

    async def rows(self, statement: str, *values: Any) -> list[dict[str, Any]]:
        return [dict(row) for row in await self._connection.fetch(statement, *values)]

    async def retries_are_due(self, subscription_id: str) -> int:
        """Make the next attempts of waiting deliveries due now. Returns how many."""
        changed = await self.rows(
            "UPDATE delivery SET due_at = clock_timestamp() WHERE subscription_id = $1"
            " AND claim IS NULL AND state = 'pending' RETURNING id",
            uuid.UUID(subscription_id),
        )
        return len(changed)

    async def last_attempts_are_due(self, subscription_id: str) -> int:
        """Make the last of ten attempts due now, as if the others had been made. Returns how many deliveries."""
        changed = await self.rows(
            "UPDATE delivery SET due_at = clock_timestamp(), attempts_made = 9"
            " WHERE subscription_id = $1 AND claim IS NULL AND state = 'pending' RETURNING id",
            uuid.UUID(subscription_id),
        )
        return len(changed)

    async def previous_secret_expires(self, subscription_id: str) -> None:
        await self.rows(
            "UPDATE subscription SET previous_secret_expires_at = clock_timestamp() WHERE id = $1",
            uuid.UUID(subscription_id),
        )

    async def leases_end(self) -> int:
        """End the leases of deliveries that a killed process had claimed. Returns how many."""
        ended = await self.rows(
            "UPDATE delivery SET lease_until = clock_timestamp() WHERE claim IS NOT NULL RETURNING id"
        )
        return len(ended)


@asynccontextmanager
async def dispatcher_tables(environment: Environment) -> AsyncIterator[DispatcherTables]:
    connection = await asyncpg.connect(environment.database_urls["webhook_dispatcher"])
    try:
        yield DispatcherTables(connection)
    finally:
        await connection.close()


@asynccontextmanager
async def retries_wait(environment: Environment) -> AsyncIterator[None]:
    """In the block an attempt that failed is made again only when the test makes it due. Its first pause is 5 s, in
    which a busy machine reads few deliveries.
    """
    connection = await asyncpg.connect(environment.database_urls["postgres"])
    try:
        await connection.execute(_RETRIES_WAIT)
        try:
            yield
        finally:
            await connection.execute(_RETRIES_COME)
    finally:
        await connection.close()
