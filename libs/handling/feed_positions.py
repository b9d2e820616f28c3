"""Answering how far a service has applied the feeds that it follows."""

from __future__ import annotations

from libs.contracts.principal import Principal
from libs.contracts.reconciliation import FeedPosition, FeedPositions, ListFeedPositions
from libs.contracts.result import Result
from libs.handling.queries import QueryHandler
from libs.persistence import cursor
from libs.persistence.engine import Database


def feed_positions(database: Database) -> QueryHandler:
    """The handler of a service's `list_feed_positions`. A feed that has had no entry yet is left out."""

    async def handle(_: Principal, __: ListFeedPositions, ___: float) -> Result:
        async with database.transaction() as connection:
            positions = await cursor.positions(connection)
        return Result(
            data=FeedPositions(
                feeds=[
                    FeedPosition(feed=feed, position=position)
                    for feed, position in positions.items()
                ]
            )
        )

    return handle
