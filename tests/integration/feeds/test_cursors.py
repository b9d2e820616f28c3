"""A provider whose entries have ids and cursors, and no positions."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

import pytest
from sqlalchemy import text

from libs.persistence import cursor, feed_events, feed_stops
from libs.persistence.engine import Database
from libs.providers.feed_entries import FeedCursor, Place, decode_entries
from tests.integration.feeds.following import (
    FEED,
    Entry,
    Provider,
    command_line,
    followed,
    moved_to,
    names,
    request_skip,
    stands_still,
)
from tests.support.infrastructure import Environment
from tests.support.waiting import eventually


@dataclass
class ProviderWithCursors(Provider):
    """Its entries, names with ids, are read after a cursor, the id of the last one; some are delivered again."""

    asked: list[FeedCursor] = field(default_factory=list)

    async def fetch(self, after: FeedCursor, limit: int) -> list[Entry]:
        self.asked.append(after)
        ids = [item["cursor"] for item in self.items]
        begin = (
            0
            if after.provider_cursor is None
            else ids.index(json.loads(after.provider_cursor)["after"]) + 1
        )
        return decode_entries(
            self.items[begin : begin + limit],
            after.position,
            lambda item, place: Entry(
                place.position, "named", str(item["name"]), place.provider_cursor, place.event_id
            ),
            lambda item, position: Place(
                position + 1, "named", json.dumps({"after": item["cursor"]}), item["event_id"]
            ),
        )


def delivered(*names: str | None) -> list[dict[str, Any]]:
    """Deliveries of events, each of which is about a name; None: one that cannot be read."""
    return [
        {"cursor": f"d{number}", "event_id": f"event {name}"} | ({"name": name} if name else {})
        for number, name in enumerate(names, start=1)
    ]


async def test_a_feed_goes_on_by_its_providers_state_and_repeated_events_have_one_effect(
    database: Database,
) -> None:
    provider = ProviderWithCursors(delivered("Ada", "Grace", "Ada", "Ada", "Mary"))
    async with followed(database, provider, page_size=3):
        await eventually("its end is reached", moved_to(database, 5))
        async with database.driver() as connection:
            last = await cursor.poll(connection, FEED)

        provider.items = delivered("Ada", "Grace", "Ada", "Ada", "Mary", "Grace", "Joan")
        await eventually("what came later is applied", moved_to(database, 7))

    assert last == cursor.Position(5, '{"after": "d5"}')
    assert {after.provider_cursor for after in provider.asked} >= {
        None,
        '{"after": "d3"}',
        last.state,
    }
    assert provider.prepared == [[1, 2], [5], [7]]
    assert await names(database) == ["Ada", "Grace", "Mary", "Joan"]


async def test_an_entry_that_is_skipped_is_passed_by_its_state(database: Database) -> None:
    provider = ProviderWithCursors(delivered("Ada", None, "Mary"))
    async with followed(database, provider):
        standing = await eventually("it stands still", lambda: stands_still(database))
        assert standing.stop is not None
        assert standing.stop.entry_position == 2

        assert await request_skip(database, 2)

        await eventually("it goes on", moved_to(database, 3))
    assert await names(database) == ["Ada", "Mary"]


async def test_a_decision_to_skip_is_about_its_entry_whichever_position_that_has_by_then(
    database: Database,
) -> None:
    """An event that the provider delivers late takes a position that a later one had."""

    async def stopped_by(event_id: str, position: int) -> None:
        stop = feed_stops.Stop(1, position, "named", "unreadable", None, event_id)
        async with database.transaction() as connection:
            await feed_stops.record(connection, FEED, stop)

    async def take_skip(position: int, event_id: str) -> str | None:
        async with database.transaction() as connection:
            return await feed_stops.take_skip(connection, FEED, position, event_id)

    await stopped_by("x", 2)
    assert await request_skip(database, 2)
    assert not await request_skip(database, 2), "it is decided already"

    assert await take_skip(2, "late") is None
    await stopped_by("late", 2)
    assert await request_skip(database, 2)
    assert await take_skip(2, "late") == "seen to by hand"
    assert await take_skip(3, "x") is None, "it is decided on anew"
    await stopped_by("x", 3)
    assert await request_skip(database, 3)
    assert await take_skip(4, "x") == "seen to by hand"
    assert await take_skip(4, "x") is None


async def test_a_feed_whose_provider_forgot_the_cursor_is_restarted_by_an_operator(
    fresh_environment: Environment, database: Database
) -> None:
    bankside = command_line(fresh_environment).run
    command = ("feeds", "restart", "onboarding/identity", "--reason", "it began anew", "--yes")
    provider = ProviderWithCursors(delivered("Ada", "Grace"))
    async with followed(database, provider):
        await eventually("its end is reached", moved_to(database, 2))
        while_it_moves = await bankside(*command)

        anew = delivered("Ada", "Grace", "Mary")
        provider.items = [{**item, "cursor": f"new {item['cursor']}"} for item in anew]
        await eventually("it stands still", lambda: stands_still(database))
        done = await bankside(*command)

        await eventually("it goes on", moved_to(database, 5))

    assert (while_it_moves[0], "cannot be restarted" in while_it_moves[2]) == (2, True)
    assert done[0] == 0
    assert await names(database) == ["Ada", "Grace", "Mary"]


async def test_a_restart_that_would_apply_entries_again_is_refused_unless_an_operator_wants_it(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(feed_events, "KEPT", 3)
    provider = ProviderWithCursors(delivered("a", "b", "c", "d", "e", "f"))
    async with followed(database, provider, page_size=1):
        await eventually("its end is reached", moved_to(database, 6))
        provider.items = [{**item, "cursor": f"new {item['cursor']}"} for item in provider.items]
        await eventually("it stands still", lambda: stands_still(database))

        with pytest.raises(feed_stops.ForgottenEvents):
            await restart(database)
        assert await stands_still(database)
        await restart(database, apply_again=True)

        await eventually("it goes on", moved_to(database, 12))
    assert await names(database) == [*"abcdef", *"abc"]


async def test_a_restart_is_not_undone_by_a_page_that_was_read_before_it(
    database: Database,
) -> None:
    class ForAMomentForgetful(ProviderWithCursors):
        forgot = False

        async def fetch(self, after: FeedCursor, limit: int) -> list[Entry]:
            if self.forgot and after.provider_cursor is not None:
                if await stands_still(database) is None:
                    raise ValueError("cursor not known")
                page = await super().fetch(after, limit)
                await restart(database)
                return page
            return await super().fetch(after, limit)

    provider = ForAMomentForgetful(delivered("Ada", "Grace"))
    async with followed(database, provider):
        await eventually("its end is reached", moved_to(database, 2))
        provider.forgot = True
        provider.items = delivered("Ada", "Grace", "Mary")

        # Counted on: of the three entries that are read again two were applied before.
        await eventually("all of it is read again", moved_to(database, 5))

    assert FeedCursor(2) in provider.asked
    assert await names(database) == ["Ada", "Grace", "Mary"]


async def restart(database: Database, *, apply_again: bool = False) -> None:
    async with database.transaction() as connection:
        assert await feed_stops.restart(connection, FEED, apply_again=apply_again)


async def test_ids_of_applied_events_are_bounded(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(feed_events, "KEPT", 3)
    provider = ProviderWithCursors(delivered(*(f"name {n}" for n in range(10))))
    async with followed(database, provider, page_size=2):
        await eventually("its end is reached", moved_to(database, 10))

    async with database.transaction() as connection:
        kept = (await connection.execute(text("SELECT position FROM feed_event"))).scalars()
        assert sorted(kept) == [8, 9, 10]
