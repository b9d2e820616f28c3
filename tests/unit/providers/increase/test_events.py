"""The event feed: in order, each event once, also where several have one time and at the feed's end."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from aiohttp import web

from libs.contracts.errors import ProviderError
from libs.providers.feed_entries import FETCH_SECONDS
from libs.providers.increase import events as module
from libs.providers.increase.client import IncreaseClient
from libs.providers.increase.events import EventFeed
from tests.unit.providers.conftest import Provider, says
from tests.unit.providers.increase.conftest import shows

NOON = datetime(2026, 3, 2, 12, tzinfo=UTC)
CATEGORIES = ["wire_transfer.created", "wire_transfer.updated"]


def event(
    number: int, seconds: float = 0, category: str = "wire_transfer.updated"
) -> dict[str, Any]:
    at = NOON + timedelta(seconds=seconds)
    return {
        "id": f"event_{number}",
        "category": category,
        "associated_object_id": f"wire_transfer_{number}",
        "associated_object_type": "wire_transfer",
        "created_at": at.isoformat().replace("+00:00", "Z"),
        "type": "event",
    }


class Events:
    """Increase's list of them: filtered by time, ascending, in pages; its cursors are of pages that follow."""

    def __init__(self) -> None:
        self.events: list[dict[str, Any]] = []
        self.requests: list[dict[str, list[str]]] = []

    async def answer(self, request: web.Request) -> web.StreamResponse:
        query = parse_qs(urlsplit(request.raw_path).query)
        self.requests.append(query)
        assert query["order_by.direction"] == ["ascending"]
        since = datetime.fromisoformat(
            query.get("created_at.on_or_after", ["1970-01-01T00:00:00Z"])[0]
        )
        rows = sorted(
            (e for e in self.events if datetime.fromisoformat(e["created_at"]) >= since),
            key=lambda e: datetime.fromisoformat(e["created_at"]),
        )
        begin, limit = int(query.get("cursor", ["0"])[0]), int(query["limit"][0])
        more = begin + limit < len(rows)
        page = {
            "data": rows[begin : begin + limit],
            "next_cursor": str(begin + limit) if more else None,
        }
        return await shows(page)(request)


@pytest.fixture
def listed(provider: Provider) -> Events:
    events = Events()
    provider.answers = [events.answer]
    return events


async def read_all(
    client: IncreaseClient, state: str | None, limit: int
) -> tuple[list[str], str | None]:
    feed, found = EventFeed(client, CATEGORIES), []
    while page := await feed.fetch(state, limit):
        assert len(page) <= limit
        found += [one.event_id for one in page]
        state = page[-1].state
    return found, state


def ids(*numbers: int) -> list[str]:
    return [f"event_{number}" for number in numbers]


@pytest.mark.parametrize("limit", [1, 2, 100])
async def test_events_are_given_in_order_each_once(
    listed: Events, increase: IncreaseClient, limit: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "LARGEST_PAGE", 3)
    listed.events = [event(n, seconds) for n, seconds in enumerate((0, 0, 0, 0, 1, 60, 60, 61))]

    found, state = await read_all(increase, None, limit)
    at_the_end = await EventFeed(increase, CATEGORIES).fetch(state, limit)

    assert found == ids(*range(8))
    assert at_the_end == []
    assert listed.requests[0]["category.in"] == [",".join(CATEGORIES)]


async def test_at_its_end_the_feed_goes_on_with_what_came_since(
    listed: Events, increase: IncreaseClient
) -> None:
    listed.events = [event(0), event(1)]
    _, state = await read_all(increase, None, 100)
    listed.events += [event(2), event(3, 1), event(4, -3)]

    found, state = await read_all(increase, state, 100)
    again, _ = await read_all(increase, state, 100)

    assert found == ids(4, 2, 3)  # one has the newest time too, one appeared late
    assert again == []


async def test_events_that_appear_minutes_late_are_found_every_now_and_then(
    listed: Events, increase: IncreaseClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    listed.events = [event(n, 10 * n) for n in range(20)]
    feed = EventFeed(increase, CATEGORIES)
    state = (await feed.fetch(None, 100))[-1].state
    listed.events.append(event(20, 15))

    at_once = await feed.fetch(state, 100)
    monkeypatch.setattr(module, "WHOLE_EVERY_SECONDS", 0.0)
    late = await feed.fetch(state, 100)
    again = await feed.fetch(late[-1].state, 100)

    assert [one.event_id for one in (*at_once, *late, *again)] == ids(20)
    assert at_once == []
    begins = [request["created_at.on_or_after"][0] for request in listed.requests[1:]]
    assert begins[0] > begins[1] == begins[2]


async def test_fetches_between_two_of_the_whole_overlap_do_not_shorten_it(
    listed: Events, increase: IncreaseClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The late event becomes visible within the overlap, just after a fetch that read it whole."""
    overlap = module.OVERLAP.total_seconds()
    until_next = module.WHOLE_EVERY_SECONDS + FETCH_SECONDS
    listed.events = [event(0), event(1, overlap)]
    feed = EventFeed(increase, CATEGORIES)
    state = (await feed.fetch(None, 100))[-1].state
    listed.events += [event(2, 1), event(3, overlap + until_next)]

    short = await feed.fetch(state, 100)
    monkeypatch.setattr(module, "WHOLE_EVERY_SECONDS", 0.0)
    whole = await feed.fetch(short[-1].state, 100)

    assert [one.event_id for one in short] == ids(3)
    assert [one.event_id for one in whole] == ids(2)


async def test_events_that_appear_minutes_late_are_given_until_they_are_applied(
    listed: Events, increase: IncreaseClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    listed.events = [event(n, 10 * n) for n in range(20)]
    feed = EventFeed(increase, CATEGORIES)
    state = (await feed.fetch(None, 100))[-1].state
    listed.events += [event(20, 15), event(21, 16), event(22, 200)]
    monkeypatch.setattr(module, "WHOLE_EVERY_SECONDS", 0.0)
    late = await feed.fetch(state, 2)
    monkeypatch.setattr(module, "WHOLE_EVERY_SECONDS", 3600.0)

    again = await feed.fetch(state, 2)
    newer = await feed.fetch(late[-1].state, 2)
    nothing = await feed.fetch(newer[-1].state, 2)

    assert [one.event_id for one in late] == ids(20, 21)
    assert [one.event_id for one in again] == ids(20, 21)
    assert [one.event_id for one in newer] == ids(22)
    assert nothing == []


async def test_a_feed_that_stopped_within_a_page_goes_on_there(
    listed: Events, increase: IncreaseClient
) -> None:
    listed.events = [event(n) for n in range(4)]
    page = await EventFeed(increase, CATEGORIES).fetch(None, 100)

    rest = await EventFeed(increase, CATEGORIES).fetch(page[1].state, 100)

    assert [one.event_id for one in rest] == ids(2, 3)


async def test_the_state_is_bounded(
    listed: Events, increase: IncreaseClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "REMEMBERED", 10)
    listed.events = [event(n, n / 1000) for n in range(300)]

    found, state = await read_all(increase, None, 100)

    assert found == ids(*range(300))
    assert state is not None
    assert len(json.loads(state)["applied_ms"]) == 10


async def test_a_state_is_short_enough_to_be_carried_by_each_entry_of_a_page(
    listed: Events, increase: IncreaseClient
) -> None:
    listed.events = [event(n, n / 1000) for n in range(2000)]

    page = await EventFeed(increase, CATEGORIES).fetch(None, 2000)

    assert max(len(one.state) for one in page) < 40_000


async def test_a_state_of_an_earlier_shape_is_read(
    listed: Events, increase: IncreaseClient
) -> None:
    """Its events are given once more: each has its id, of which a second delivery has no effect."""
    at = NOON.isoformat()
    state = {"categories": CATEGORIES, "floor": at, "newest": at, "applied": {"event_0": at}}
    listed.events = [event(0), event(1, 1)]

    found, _ = await read_all(increase, json.dumps(state), 100)

    assert found == ids(0, 1)


async def test_a_time_that_is_ahead_hides_no_event(
    listed: Events, increase: IncreaseClient
) -> None:
    ahead = (datetime.now(UTC) - NOON).total_seconds() + 86400
    listed.events = [event(0), event(1, ahead)]
    _, state = await read_all(increase, None, 100)
    listed.events.append(event(2, ahead - 86400))

    found, _ = await read_all(increase, state, 100)

    assert found == ids(2)


async def test_more_events_of_one_time_than_a_fetch_reads_are_not_passed_over(
    listed: Events, increase: IncreaseClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "LARGEST_PAGE", 2)
    monkeypatch.setattr(module, "PAGES", 2)
    listed.events = [event(n) for n in range(5)]
    page = await EventFeed(increase, CATEGORIES).fetch(None, 4)

    with pytest.raises(ProviderError):
        await EventFeed(increase, CATEGORIES).fetch(page[-1].state, 4)


async def test_an_event_of_another_shape_is_given_as_it_came_and_can_be_passed(
    listed: Events, increase: IncreaseClient
) -> None:
    listed.events = [
        event(0),
        event(1, 1) | {"associated_object_id": 7},
        event(2, 2, "of.a.later.release"),
    ]

    first, broken, last = await EventFeed(increase, CATEGORIES).fetch(None, 100)
    after = await EventFeed(increase, CATEGORIES).fetch(broken.state, 100)

    assert first.decoded().associated_object_id == "wire_transfer_0"
    with pytest.raises(ValueError, match="str"):
        broken.decoded()
    assert last.decoded().category == "of.a.later.release"
    assert [one.event_id for one in after] == ids(2)


@pytest.mark.parametrize("body", ["{}", '{"data": 1, "next_cursor": null}', "[]"])
async def test_a_page_of_another_shape_is_an_error(
    provider: Provider, increase: IncreaseClient, body: str
) -> None:
    provider.answers = [says(200, body)]

    with pytest.raises(ProviderError):
        await EventFeed(increase, CATEGORIES).fetch(None, 100)
