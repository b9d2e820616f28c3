"""Driving commands that are leased to a process."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import cast
from uuid import uuid4

import pytest

from libs.handling.driving import DRIVES_AT_ONCE, DRIVES_OF_TENANT, Driver
from libs.handling.running import CommandRunner
from libs.persistence import inbox
from libs.persistence.engine import Database
from libs.persistence.inbox import Leased
from tests.support.waiting import eventually


class EndlessRunner:
    """In place of `CommandRunner`: runs until it is cancelled."""

    def __init__(self) -> None:
        self.running: list[Leased] = []

    async def run(self, leased: Leased) -> str:
        self.running.append(leased)
        try:
            await asyncio.Event().wait()
        finally:
            self.running.remove(leased)
        return "ok"


def leased(tenant: str = "tenant") -> Leased:
    return Leased(uuid4(), "payments.send_wire", "m", "r", b"", b"", None, 0.0, 1, uuid4(), tenant)


async def test_a_drive_ends_when_its_process_claims_the_command_again() -> None:
    """As when its lease ran out because no connection was free to renew it."""
    runner = EndlessRunner()
    nowhere = cast(Database, None)
    driver = Driver("payments", nowhere, cast(CommandRunner, runner), 1.0, is_ordered=False)
    first = leased()
    again = replace(first, lease=uuid4())

    async def run(*leased: Leased) -> bool:
        return runner.running == [*leased]

    driver.start(first)
    await eventually("the first drive runs", lambda: run(first))
    driver.start(again)
    await eventually("the second one alone runs", lambda: run(again))

    assert driver.capacity == DRIVES_AT_ONCE - 1


async def test_a_tenant_at_its_share_is_admitted_again_once_one_of_its_drives_has_ended() -> None:
    runner = EndlessRunner()
    nowhere = cast(Database, None)
    driver = Driver("payments", nowhere, cast(CommandRunner, runner), 1.0, is_ordered=False)
    admitted = driver.admits(["one"] * (DRIVES_OF_TENANT + 1) + ["two"])
    drives = [leased("one") for _ in range(DRIVES_OF_TENANT)]
    for drive in drives:
        driver.start(drive)
    at_its_share = driver.admits(["one", "two"])
    driver.start(replace(drives[0], lease=uuid4()))  # in place of the first one
    still = driver.admits(["one", "two"])
    (ended,) = [
        task for task in asyncio.all_tasks() if str(drives[1].command_id) in task.get_name()
    ]
    ended.cancel()
    await asyncio.wait({ended})

    async def is_admitted() -> bool:
        return driver.admits(["one", "one", "two"]) == [True, False, True]

    assert admitted == [True] * DRIVES_OF_TENANT + [False, True]
    assert at_its_share == still == [False, True]
    await eventually("the ended drive has left its place", is_admitted)


async def test_a_process_at_its_most_drives_admits_none() -> None:
    runner = EndlessRunner()
    nowhere = cast(Database, None)
    driver = Driver("payments", nowhere, cast(CommandRunner, runner), 1.0, is_ordered=False)
    for number in range(DRIVES_AT_ONCE - 1):
        driver.start(leased(f"tenant {number}"))

    assert driver.admits(["one", "two"]) == [True, False]


class SlowInbox:
    """In place of a database and its inbox: a claim is answered when the test says so."""

    def __init__(self, due: Leased) -> None:
        self.due = [due]
        self.asked, self.may_answer = asyncio.Event(), asyncio.Event()
        self.released: list[Leased] = []

    @asynccontextmanager
    async def driver(self) -> AsyncIterator[None]:
        yield None

    async def claim(self, *_: object, **__: object) -> list[Leased]:
        self.asked.set()
        await self.may_answer.wait()
        claimed, self.due = self.due, []
        return claimed

    async def release(self, _: None, commands: list[Leased]) -> None:
        self.released += commands


async def test_what_a_claim_has_leased_as_the_driver_stops_is_released_and_not_driven(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    slow, runner = SlowInbox(leased()), EndlessRunner()
    [claimed] = slow.due
    monkeypatch.setattr(inbox, "claim", slow.claim)
    monkeypatch.setattr(inbox, "release", slow.release)
    database = cast(Database, slow)
    driver = Driver("payments", database, cast(CommandRunner, runner), 10.0, is_ordered=False)
    sweep = asyncio.create_task(driver.sweep())
    driver.wake()
    await slow.asked.wait()

    stop = asyncio.create_task(driver.stop(60))
    asyncio.get_running_loop().call_soon(slow.may_answer.set)
    await stop
    sweep.cancel()
    await asyncio.wait({sweep})

    assert slow.released == [claimed]
    assert runner.running == []


class QuickRunner:
    """In place of `CommandRunner`: ends at once."""

    async def run(self, _: Leased) -> str:
        return "ok"


async def test_after_a_suspect_the_others_are_claimed_which_may_be_due_later(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Of many suspects that are due before them, a claim takes one."""
    due = [replace(leased(), interruptions=inbox.SUSPECT_INTERRUPTIONS)]
    with_suspect: list[bool] = []

    async def claim(*_: object, **asked: bool) -> list[Leased]:
        with_suspect.append(asked["with_suspect"])
        claimed = due[:]
        due.clear()
        return claimed

    monkeypatch.setattr(inbox, "claim", claim)
    database = cast(Database, SlowInbox(leased()))
    driver = Driver("payments", database, cast(CommandRunner, QuickRunner()), 10.0, is_ordered=True)
    sweep = asyncio.create_task(driver.sweep())
    driver.wake()

    async def claims_are_made() -> bool:
        return len(with_suspect) >= 3

    await eventually("it claims again", claims_are_made)
    sweep.cancel()
    await asyncio.wait({sweep})

    assert with_suspect[:3] == [True, False, True]
