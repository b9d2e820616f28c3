"""The bookmark in the provider's loads of swept deposits."""

from __future__ import annotations

from sqlalchemy.ext.asyncio import AsyncConnection

from libs.persistence import cursor

STREAM = "deposit_loads"


async def position(connection: AsyncConnection) -> int:
    """That of the last load that was looked at."""
    return await cursor.read(connection, STREAM)


async def move(connection: AsyncConnection, moved_from: int, to: int) -> None:
    """Raises:
    cursor.CursorMoved: the bookmark does not stand at `moved_from`.
    """
    await cursor.move(connection, STREAM, expected=moved_from, to=to)


async def forget(connection: AsyncConnection) -> None:
    """Begin again with the provider's first load."""
    await cursor.forget(connection, STREAM)
