"""Whether this database may lack commits that were made: see `continuity`."""

from __future__ import annotations

from sqlalchemy import ColumnElement, Double, func, select

from libs.contracts.errors import OutcomePending
from libs.persistence.async_engine import AsyncConnection
from libs.persistence.tables import database_life

_LOST_HISTORY_SECONDS = select(func.lost_history_seconds(type_=Double))


def was_found_missing(record: ColumnElement[str]) -> ColumnElement[bool]:
    """Whether a record, as `<provider>: <id>`, was found missing in any life, also where the case is closed.

    A subquery without correlation, so that the list is read once in a statement, however many records are asked for.
    """
    return record.in_(select(func.unnest(database_life.c.missing_records)))


async def has_lost_history(connection: AsyncConnection) -> bool:
    """Whether a provider may hold what was sent in a history that this database lost."""
    return await lost_history_seconds(connection) is not None


async def lost_history_seconds(connection: AsyncConnection) -> float | None:
    """How long ago, at least, a provider was sent what this database may have lost; None when it lost nothing."""
    seconds: float | None = (await connection.execute(_LOST_HISTORY_SECONDS)).scalar_one()
    return seconds


async def require_nothing_lost(connection: AsyncConnection) -> None:
    """To be called before a command of which nothing is known to be sent is refused for good by what is stored: the
    refusal would be kept under its key, and the provider may have carried the command out in a history that was lost.

    Raises:
        OutcomePending: this database may have gone back.
    """
    if await has_lost_history(connection):
        raise OutcomePending
