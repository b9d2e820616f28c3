"""A feed that stands still shows where and why, and is moved on by an operator."""

from __future__ import annotations

import json

import pytest

from libs.handling.feed_tail import STOPPED_SECONDS
from libs.persistence import feed_stops
from libs.persistence.engine import Database
from tests.integration.feeds.following import (
    FEED,
    Provider,
    command_line,
    followed,
    items,
    moved_to,
    names,
    request_skip,
    stands_still,
)
from tests.support.infrastructure import Environment
from tests.support.metrics import value_of
from tests.support.waiting import eventually


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
    assert (wrong[0], "does not stand still" in wrong[2]) == (2, True)
    assert skipped[0] == 0
    assert "stands still" not in afterwards[1]
    assert "Ada was told" in afterwards[1]
