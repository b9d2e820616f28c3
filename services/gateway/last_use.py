"""When each key was last used, to the minute: noted in memory, and written every few seconds for all keys together."""

from __future__ import annotations

from typing import NoReturn

from libs.handling.periodic import repeat
from libs.persistence.engine import Database

WRITE_SECONDS = 5.0

# Rows are locked in a fixed order, so that two gateways cannot wait for each other.
_WRITE = """
    WITH used AS (
        SELECT id FROM credentials
        WHERE id = ANY($1::bigint[]) AND (last_used_at IS NULL OR last_used_at < date_trunc('minute', now()))
        ORDER BY id FOR NO KEY UPDATE
    )
    UPDATE credentials SET last_used_at = date_trunc('minute', now()) FROM used WHERE credentials.id = used.id
    """


class LastUse:
    """The keys with which requests were admitted since they were last written."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._used: set[int] = set()

    def note(self, credential_id: int) -> None:
        self._used.add(credential_id)

    async def write_for_ever(self) -> NoReturn:
        await repeat("last_use", self.write, WRITE_SECONDS)

    async def write(self) -> None:
        """Nothing is lost when this fails: the keys are written by the next call, with the time of then."""
        used = set(self._used)
        if not used:
            return
        async with self._database.driver_transaction() as connection:
            await connection.execute(_WRITE, list(used))
        self._used -= used
