"""What feeds and the relay log in an outage: one line without a trace, and the trace of all that is no outage."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, NoReturn

import pytest
from aio_pika.exceptions import AMQPConnectionError
from structlog.testing import capture_logs
from structlog.typing import EventDict

from libs.handling import feeds, outbox_relay
from libs.handling.feeds import run_feed
from libs.handling.outbox_relay import run_relay
from libs.persistence.leadership import LeadershipLost
from libs.runtime.process import Process
from tests.support.waiting import eventually

FAILURES = 20


class Failing:
    """A database that gives no connection."""

    def __init__(self, error: Exception) -> None:
        self.failures = 0
        self._error = error

    def driver(self) -> NoReturn:
        self.failures += 1
        raise self._error

    def transaction(self) -> NoReturn:
        self.driver()

    async def has_failed(self) -> bool:
        return self.failures >= FAILURES


class Term:
    number = 1


@asynccontextmanager
async def elected(*_: object, **__: object) -> AsyncIterator[Term]:
    yield Term()


async def never(*_: object) -> NoReturn:
    raise AssertionError("there is no database")


async def followed(database: Any) -> list[EventDict]:
    """The lines of a feed that is followed until the database has failed often."""
    with capture_logs() as logs:
        async with run_feed(Process("payments"), database, "wires", never, never, poll_seconds=1):
            await eventually("the failures", database.has_failed)
    return [line for line in logs if line["event"] == "feed_not_leading"]


@pytest.mark.parametrize("leads", [False, True], ids=["stands by", "leads"])
async def test_a_feed_without_its_database_is_one_line_without_a_trace(
    monkeypatch: pytest.MonkeyPatch, leads: bool
) -> None:
    monkeypatch.setattr(feeds, "PAUSE_SECONDS", 0)
    if leads:
        monkeypatch.setattr(feeds, "leadership", elected)

    [line] = await followed(Failing(ConnectionRefusedError()))

    assert (line["feed"], line["error"]) == ("wires", "ConnectionRefusedError")
    assert line["exc_info"] is None


async def test_a_feed_that_is_not_led_for_another_reason_keeps_the_trace(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(feeds, "PAUSE_SECONDS", 0)
    fault = LookupError()

    [line] = await followed(Failing(fault))

    assert (line["feed"], line["exc_info"]) == ("wires", fault)


@pytest.mark.parametrize("error", [AMQPConnectionError(), LeadershipLost(), ConnectionError()])
async def test_a_relay_that_waits_for_the_broker_or_the_database_is_one_line_without_a_trace(
    monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    database: Any = Failing(error)

    class Relay:
        def __init__(self, *_: object) -> None:
            pass

        async def run_while_leading(self) -> NoReturn:
            database.driver()
            raise AssertionError("there is no database")

    class Broker:
        def add(self, _: object) -> None:
            pass

    monkeypatch.setattr(outbox_relay, "ELECTION_SECONDS", 0)
    monkeypatch.setattr(outbox_relay, "Relay", Relay)
    broker: Any = Broker()

    with capture_logs() as logs:
        async with run_relay(Process("payments"), broker, database):
            await eventually("the failures", database.has_failed)

    [line] = [line for line in logs if line["event"] == "relay_waits"]
    assert (line["error"], line["exc_info"]) == (type(error).__name__, None)
