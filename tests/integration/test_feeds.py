"""A feed that stands still shows where and why, and is moved on by an operator."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import msgspec
import pytest
import pytest_asyncio
from sqlalchemy import text

from libs.contracts.operating.feeds import SERVICES
from libs.handling import feeds
from libs.handling.feed_tail import STOPPED_SECONDS, Record
from libs.handling.feeds import run_feed
from libs.handling.operating.serving import operating_handlers
from libs.persistence import cursor, feed_events, feed_stops
from libs.persistence.async_engine import AsyncConnection
from libs.persistence.engine import Database
from libs.persistence.feed_stops import FeedState
from libs.providers.feed_entries import FeedCursor, Place, decode_entries
from libs.providers.sandbox.feed_pages import locate
from libs.runtime.process import Process
from tests.integration.tables import define
from tests.support.answered_operators import AnsweredOperators
from tests.support.infrastructure import Environment
from tests.support.metrics import value_of
from tests.support.waiting import eventually

FEED = "identity"


class Entry(msgspec.Struct, frozen=True):
    position: int
    type: str
    name: str
    state: str | None = None
    event_id: str | None = None


@dataclass
class Provider:
    """A feed in memory. Applying its entries writes their names into the table `names`."""

    items: list[dict[str, Any]] = field(default_factory=list)
    unappliable: frozenset[str] = frozenset()
    hangs: bool = False
    fails: bool = False
    is_reversed: bool = False
    prepared: list[list[int]] = field(default_factory=list)
    """The positions of each page that was applied."""

    async def fetch(self, after: FeedCursor, limit: int) -> list[Entry]:
        if self.hangs:
            await asyncio.Event().wait()
        if self.fails:
            raise ConnectionError
        page = [item for item in self.items if item["position"] > after.position][:limit]
        if self.is_reversed:
            page.reverse()
        return decode_entries(
            page, after.position, lambda item, _: msgspec.convert(item, Entry), locate
        )

    async def prepare(self, entries: Sequence[Entry]) -> Record:
        self.prepared.append([entry.position for entry in entries])

        async def record(connection: AsyncConnection) -> None:
            for entry in entries:
                await connection.execute(
                    text("INSERT INTO names (name) VALUES (:name)"), {"name": entry.name}
                )
                assert entry.name not in self.unappliable

        return record


def items(*names: object) -> list[dict[str, Any]]:
    return [
        {"position": position, "type": "person.named", "name": name}
        for position, name in enumerate(names, start=1)
    ]


@pytest_asyncio.fixture
async def database(fresh_environment: Environment, database: Database) -> Database:
    """With the table `names`."""
    await define(fresh_environment, "onboarding", "CREATE TABLE names (n serial, name text)")
    return database


@asynccontextmanager
async def followed(
    database: Database, provider: Provider, page_size: int = 100
) -> AsyncIterator[Process]:
    process = Process("onboarding")
    process.readiness.switch(True)
    async with run_feed(
        process,
        database,
        FEED,
        provider.fetch,
        provider.prepare,
        poll_seconds=0.05,
        page_size=page_size,
    ):
        yield process


async def names(database: Database) -> list[str]:
    async with database.transaction() as connection:
        return list((await connection.execute(text("SELECT name FROM names ORDER BY n"))).scalars())


async def stands_still(database: Database) -> FeedState | None:
    async with database.transaction() as connection:
        for state in await feed_stops.feed_states(connection):
            if state.feed == FEED and state.stop is not None:
                return state
    return None


def moved_to(database: Database, position: int) -> Callable[[], Awaitable[bool]]:
    async def check() -> bool:
        async with database.transaction() as connection:
            return await cursor.read(connection, FEED) == position

    return check


async def request_skip(database: Database, position: int) -> bool:
    async with database.transaction() as connection:
        return await feed_stops.request_skip(
            connection, FEED, position, reason="seen to by hand", asked_by="an operator"
        )


async def test_a_feed_is_applied_page_by_page_in_order_and_new_entries_are_found_later(
    database: Database,
) -> None:
    provider = Provider(items("Ada", "Grace", "Mary"))
    async with followed(database, provider, page_size=2):
        await eventually("its end is reached", moved_to(database, 3))

        provider.items = items("Ada", "Grace", "Mary", "Joan")

        await eventually("the new entry is applied", moved_to(database, 4))
    assert provider.prepared == [[1, 2], [3], [4]]
    assert await names(database) == ["Ada", "Grace", "Mary", "Joan"]


@pytest.mark.parametrize("kind", ["away", "out of order"])
async def test_a_page_that_failed_is_applied_later_and_offers_no_entry_to_be_skipped(
    database: Database, kind: str
) -> None:
    provider = Provider(items("Ada", "Grace"))
    provider.fails, provider.is_reversed = kind == "away", kind == "out of order"
    async with followed(database, provider):
        standing = await eventually("it stands still", lambda: stands_still(database))
        assert standing.stop is not None
        assert standing.stop.entry_position is None
        assert not await request_skip(database, 1)

        provider.fails = provider.is_reversed = False

        await eventually("it goes on", moved_to(database, 2))

        async def moves() -> bool:
            return await stands_still(database) is None

        await eventually("the stop is cleared", moves)
    assert await names(database) == ["Ada", "Grace"]


async def test_good_entries_before_a_malformed_one_are_applied_and_it_is_recorded(
    database: Database,
) -> None:
    provider = Provider(items("Ada", "Grace", {"secret": "536904399"}, "Mary"))
    async with followed(database, provider):
        standing = await eventually("it stands still", lambda: stands_still(database))

        assert standing.position == 2
        assert standing.stop is not None
        assert (standing.stop.entry_position, standing.stop.entry_type) == (3, "person.named")
        assert "$.name" in standing.stop.error
        assert json.loads(standing.stop.outline or "")["name"] == {"secret": "str"}
        assert "536904399" not in standing.stop.error + str(standing.stop.outline)
        assert await names(database) == ["Ada", "Grace"]


async def test_an_entry_that_cannot_be_applied_is_found_among_its_page(database: Database) -> None:
    provider = Provider(items("Ada", "Grace", "Mary"), unappliable=frozenset({"Grace"}))
    async with followed(database, provider):
        standing = await eventually("it stands still", lambda: stands_still(database))

        assert standing.stop is not None
        assert standing.stop.entry_position == 2
        assert await names(database) == ["Ada"]


@pytest.mark.parametrize("kind", ["malformed", "unappliable"])
async def test_an_operator_has_the_entry_skipped_and_the_feed_goes_on(
    database: Database, kind: str
) -> None:
    provider = Provider(items("Ada", 7 if kind == "malformed" else "Eve", "Mary"))
    provider.unappliable = frozenset({"Eve"})
    async with followed(database, provider):
        await eventually("it stands still", lambda: stands_still(database))
        assert not await request_skip(database, 3)
        assert not await request_skip(database, 1)

        assert await request_skip(database, 2)

        await eventually("it goes on", moved_to(database, 3))

        async def moves() -> bool:
            return await stands_still(database) is None

        await eventually("it stands still no longer", moves)
    assert await names(database) == ["Ada", "Mary"]
    async with database.transaction() as connection:
        [skip] = await feed_stops.skips(connection, FEED, most=10)
    assert (skip.position, skip.asked_by, skip.reason) == (2, "an operator", "seen to by hand")
    assert skip.skipped_at is not None


async def test_how_long_a_feed_has_stood_still_is_measured(database: Database) -> None:
    provider = Provider(items("Ada", 7))
    async with followed(database, provider):

        async def grows() -> bool:
            return bool(value_of(STOPPED_SECONDS.labels(FEED)) > 0.1)

        await eventually("the metric says so", grows)
        provider.items[1]["name"] = "Grace"

        async def is_zero() -> bool:
            return bool(value_of(STOPPED_SECONDS.labels(FEED)) == 0)

        await eventually("it is mended by the provider", moved_to(database, 2))
        await eventually("the metric says so", is_zero)


def command_line(environment: Environment) -> AnsweredOperators:
    return AnsweredOperators(
        environment, {service: partial(operating_handlers, service) for service in SERVICES}
    )


async def test_the_command_line_lists_shows_and_skips(
    fresh_environment: Environment, database: Database
) -> None:
    bankside = command_line(fresh_environment).run
    provider = Provider(items("Ada", {"secret": "536904399"}, "Mary"))
    async with followed(database, provider):
        await eventually("it stands still", lambda: stands_still(database))

        listed = await bankside("feeds", "list", "--stopped", "--json")
        shown = await bankside("feeds", "show", "onboarding/identity")
        wrong = await bankside(
            *("feeds", "skip", "onboarding/identity", "--position", "9", "--reason", "x", "--yes"),
        )
        skipped = await bankside(
            *("feeds", "skip", "onboarding/identity", "--position", "2"),
            *("--reason", "Ada was told", "--yes", "--json"),
        )
        await eventually("it goes on", moved_to(database, 3))
        afterwards = await bankside("feeds", "show", "onboarding/identity")

    [feed] = json.loads(listed[1])["feeds"]
    assert (feed["feed"], feed["position"]) == ("onboarding/identity", 1)
    assert feed["stop"]["entry_position"] == 2
    assert feed["stop"]["outline"]["name"] == {"secret": "str"}
    assert "stands still" in shown[1]
    assert "536904399" not in shown[1] + listed[1]
    assert (wrong[0], "does not stand still" in wrong[2]) == (1, True)
    assert skipped[0] == 0
    assert "stands still" not in afterwards[1]
    assert "Ada was told" in afterwards[1]


# A provider whose entries have ids and no positions


@dataclass
class ProviderWithCursors(Provider):
    """Its entries, names with ids, are read after a cursor, the id of the last one; some are delivered again."""

    asked: list[FeedCursor] = field(default_factory=list)

    async def fetch(self, after: FeedCursor, limit: int) -> list[Entry]:
        self.asked.append(after)
        ids = [item["cursor"] for item in self.items]
        begin = 0 if after.state is None else ids.index(json.loads(after.state)["after"]) + 1
        return decode_entries(
            self.items[begin : begin + limit],
            after.position,
            lambda item, place: Entry(
                place.position, "named", str(item["name"]), place.state, place.event_id
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
    assert {after.state for after in provider.asked} >= {None, '{"after": "d3"}', last.state}
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

    assert (while_it_moves[0], "cannot be restarted" in while_it_moves[2]) == (1, True)
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


# Readiness


async def not_ready(process: Process) -> bool:
    return f"feed:{FEED}" in await process.readiness.failures()


async def is_ready(process: Process) -> bool:
    return not await not_ready(process)


async def test_a_provider_that_is_away_does_not_make_the_service_unready(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(feeds, "PROGRESS_SECONDS", 60.0)
    async with followed(database, Provider(fails=True)) as process:
        standing = await eventually("it stands still", lambda: stands_still(database))

        assert await is_ready(process)
        assert standing.stop is not None
        assert standing.stop.entry_position is None


async def test_a_tail_that_hangs_is_not_ready(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(feeds, "PROGRESS_SECONDS", 1.0)
    provider = Provider()
    async with followed(database, provider) as process:
        await eventually("it follows", lambda: is_ready(process))

        provider.hangs = True

        await eventually("it is not ready", lambda: not_ready(process))


async def test_who_stands_by_is_ready(database: Database) -> None:
    async with (
        followed(database, Provider()) as leading,
        followed(database, Provider()) as standing_by,
    ):
        await eventually("the one leads", lambda: is_ready(leading))
        await eventually("the other stands by", lambda: is_ready(standing_by))
