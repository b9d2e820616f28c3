from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import NoReturn

import asyncpg
import pytest

from services.provider_sandbox.database import Database
from services.provider_sandbox.wires import clock
from tests.support.waiting import eventually


class DyingDatabase(Database):
    """Every connection breaks as it is taken."""

    def __init__(self, error: Exception) -> None:
        self._error = error
        self.asked = 0

    def transaction(self) -> NoReturn:
        self.asked += 1
        raise self._error

    reading = transaction


@pytest.mark.parametrize(
    "error",
    [
        asyncpg.InternalClientError("cannot switch to state 12; another operation is in progress"),
        asyncpg.ConnectionDoesNotExistError("connection was closed"),
        ConnectionRefusedError(),
    ],
    ids=lambda error: type(error).__name__,
)
async def test_wires_are_settled_again_after_the_database_was_away(
    error: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(clock, "OUTAGE_PAUSE_SECONDS", 0.01)
    database = DyingDatabase(error)
    settling = asyncio.create_task(clock.run(database, timedelta(seconds=2)))

    async def tried_again() -> bool:
        return database.asked > 1

    try:
        await eventually("it is tried again", tried_again, 5)
        assert not settling.done()
    finally:
        settling.cancel()
        await asyncio.wait({settling})
