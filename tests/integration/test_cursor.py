"""The cursor of a feed moves with what its entries cause."""

from __future__ import annotations

import asyncio

import pytest

from libs.persistence import cursor
from libs.persistence.engine import Database


async def test_a_cursor_begins_at_zero_and_moves_with_its_transaction(database: Database) -> None:
    async with database.transaction() as connection:
        assert await cursor.read(connection, "core") == 0
        await cursor.move(connection, "core", expected=0, to=5)
    with pytest.raises(ZeroDivisionError):
        async with database.transaction() as connection:
            await cursor.move(connection, "core", expected=5, to=9)
            raise ZeroDivisionError

    async with database.transaction() as connection:
        assert await cursor.read(connection, "core") == 5
        assert await cursor.read(connection, "identity") == 0


async def test_a_cursor_whose_state_changed_is_not_moved_from_the_one_that_was_read(
    database: Database,
) -> None:
    async with database.transaction() as connection:
        await cursor.move(connection, "core", expected=0, to=5, state="page 5")
        for read in (None, "page 4"):
            with pytest.raises(cursor.CursorMoved):
                await cursor.move(connection, "core", expected=5, expected_state=read, to=6)
        await cursor.move(connection, "core", expected=5, expected_state="page 5", to=6)

        assert await cursor.read(connection, "core") == 6


@pytest.mark.parametrize("start", [0, 5])
async def test_of_two_that_move_a_cursor_from_one_place_one_is_refused(
    database: Database, start: int
) -> None:
    if start:
        async with database.transaction() as connection:
            await cursor.move(connection, "core", expected=0, to=start)

    async def move(to: int) -> int:
        async with database.transaction() as connection:
            await cursor.move(connection, "core", expected=start, to=to)
        return to

    moved = await asyncio.gather(*(move(start + n) for n in range(1, 5)), return_exceptions=True)

    winners = [outcome for outcome in moved if isinstance(outcome, int)]
    assert len(winners) == 1
    assert sum(isinstance(outcome, cursor.CursorMoved) for outcome in moved) == 3
    async with database.transaction() as connection:
        assert await cursor.read(connection, "core") == winners[0]
