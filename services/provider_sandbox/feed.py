"""What an API reports later: entries numbered in the order in which their transactions committed.

The counter's row is locked from the first entry to the commit, so a reader never sees a position before a lower one.
Publish last in a transaction: others who publish wait. After the counter nothing may be locked but the counter of an
API that comes after it in the alphabet, and rows that are only locked after their account was. One more lock is
held from an insert to the commit: that of the order of a list (migration 0004). It comes before the counters, that of
postings after core banking's and before the financial provider's.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from services.provider_sandbox.database import Connection
from services.provider_sandbox.encoding import decode_object, encode, instant
from services.provider_sandbox.operations import Api, NoQuery, Read
from services.provider_sandbox.pages import PositionedPage

_PUBLISH = """
    WITH next AS (
        UPDATE feed SET position = position + cardinality($2::text[]) WHERE api = $1
        RETURNING position - cardinality($2::text[]) AS last
    )
    INSERT INTO feed_event (api, position, type, occurred_at, content)
    SELECT $1, last + number, type, clock_timestamp(), content FROM next,
        unnest($2::text[], $3::text[]) WITH ORDINALITY AS entry (type, content, number)
"""
_PAGE = """
    SELECT position, type, occurred_at, content FROM feed_event
    WHERE api = $1 AND position > $2 ORDER BY position LIMIT $3
"""
_NEWEST = "SELECT position FROM feed WHERE api = $1"


async def publish(
    connection: Connection, api: Api, event_type: str, content: Mapping[str, object]
) -> None:
    """Append one entry, in the transaction of the change that it reports."""
    await publish_all(connection, api, [(event_type, content)])


async def publish_all(
    connection: Connection, api: Api, entries: Sequence[tuple[str, Mapping[str, object]]]
) -> None:
    """Append entries, each a type and its content, in the transaction of the changes that they report."""
    if not entries:
        return
    written = await connection.execute(
        _PUBLISH,
        api,
        [event_type for event_type, _ in entries],
        [encode(content).decode() for _, content in entries],
    )
    assert written == f"INSERT 0 {len(entries)}", f"{api} has no feed"


def list_events(api: Api) -> Read[PositionedPage]:
    async def handle(connection: Connection, _: str, query: PositionedPage) -> object:
        rows = await connection.fetch(
            _PAGE,
            api,
            query.after,
            query.limit,
        )
        return {
            "events": [
                {
                    "position": row["position"],
                    "type": row["type"],
                    "occurred_at": instant(row["occurred_at"]),
                    **decode_object(row["content"]),
                }
                for row in rows
            ]
        }

    return Read("list_events", "/events", handle, PositionedPage)


def get_newest_event(api: Api) -> Read[NoQuery]:
    """The position of the newest entry, 0 when there is none."""

    async def handle(connection: Connection, _: str, __: NoQuery) -> object:
        position = await connection.fetchval(_NEWEST, api)
        return {"position": position}

    return Read("get_newest_event", "/events/newest", handle, NoQuery)
