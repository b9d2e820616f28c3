"""An outage of the database is a line in the log, and not one for each command and attempt."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import cast
from uuid import uuid4

import pytest
from structlog.testing import capture_logs

from libs.contracts.onboarding_operations import UPDATE_PERSON
from libs.contracts.principal import SERVICE
from libs.handling import acceptance
from libs.handling.acceptance import Acceptance
from libs.handling.answers import CommandAnswers
from libs.handling.driving import DRIVES_AT_ONCE, Driver
from libs.handling.outage_log import OutageLog
from libs.handling.running import CommandRunner
from libs.messaging.envelope import Envelope, raw
from libs.messaging.message_sealer import MessageSealer
from libs.messaging.replier import Replier
from libs.persistence.engine import Database
from libs.persistence.inbox import Leased
from libs.persistence.leadership import LeadershipLost
from tests.support.waiting import eventually
from tests.unit.handling.test_driving import leased

COMMANDS = 20
FAILURES = 60


class IdleDriver:
    lease_seconds = 10.0

    @contextmanager
    def place(self, _: str) -> Iterator[bool]:
        yield False

    def has_place(self, _: str) -> bool:
        return False

    def wake(self) -> None: ...


class AwayAtFirst:
    """Commits nothing in so many attempts."""

    def __init__(self, failures: int) -> None:
        self._failures = failures

    async def commit(self, *_: object) -> None:
        if self._failures:
            self._failures -= 1
            raise ConnectionRefusedError


def a_command() -> Envelope:
    return Envelope(
        id=str(uuid4()),
        message_id=str(uuid4()),
        request_id="request",
        operation=UPDATE_PERSON.name,
        principal=SERVICE,
        deadline=time.time() + 60,
        body=raw({}),
    )


async def test_commands_that_wait_for_the_database_log_one_line_without_a_trace(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(acceptance, "DATABASE_RETRY_SECONDS", 0)
    accepting = Acceptance(
        "onboarding",
        None,  # type: ignore[arg-type]
        MessageSealer("onboarding", {}),
        CommandAnswers(Replier("onboarding")),
        IdleDriver(),  # type: ignore[arg-type]
        AwayAtFirst(FAILURES),  # type: ignore[arg-type]
        None,
        frozenset(),
        frozenset(),
    )

    with capture_logs() as logs:
        await asyncio.gather(*(accepting.accept(a_command(), None, False) for _ in range(COMMANDS)))

    [line] = logs
    assert (line["event"], line["error"]) == ("not_recorded", "ConnectionRefusedError")
    assert line["exc_info"] is None


class RunnerWithoutDatabase:
    """In place of `CommandRunner`."""

    def __init__(self) -> None:
        self.runs = 0

    async def run(self, _: Leased) -> str:
        self.runs += 1
        raise ConnectionRefusedError


async def test_drives_that_an_outage_ends_log_one_line() -> None:
    runner = RunnerWithoutDatabase()
    driver = Driver(
        "onboarding", cast(Database, None), cast(CommandRunner, runner), 10.0, is_ordered=False
    )

    async def all_have_ended() -> bool:
        return runner.runs == COMMANDS and driver.capacity == DRIVES_AT_ONCE

    with capture_logs() as logs:
        for _ in range(COMMANDS):
            driver.start(leased())
        await eventually("the drives have ended", all_have_ended)

    assert [line["error"] for line in logs if line["event"] == "database_away"] == [
        "ConnectionRefusedError"
    ]


def test_an_error_that_is_no_outage_is_logged_with_its_trace_also_during_one() -> None:
    log, fault = OutageLog("commands", "not_recorded"), LookupError()

    with capture_logs() as logs:
        for error in (ConnectionRefusedError(), ConnectionRefusedError(), fault, fault):
            log.note(error, events=1)

    assert [(line["error"], line["exc_info"]) for line in logs] == [
        ("ConnectionRefusedError", None),
        ("LookupError", fault),
    ]


def test_an_error_that_is_named_as_an_outage_is_logged_without_a_trace() -> None:
    log = OutageLog("feeds", "feed_not_leading", (LeadershipLost,))

    with capture_logs() as logs:
        for error in (LeadershipLost("feed:bank"), ConnectionRefusedError(), LookupError()):
            log.note(error, feed="bank")

    assert [(line["error"], line["exc_info"] is None) for line in logs] == [
        ("LeadershipLost", True),
        ("LookupError", False),
    ]
