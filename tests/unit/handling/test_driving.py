"""Driving commands that are leased to a process."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any, cast
from uuid import uuid4

import pytest

from libs.handling import driving
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


async def test_a_tenant_at_its_limit_has_a_place_again_once_one_of_its_drives_has_ended() -> None:
    runner = EndlessRunner()
    nowhere = cast(Database, None)
    driver = Driver("payments", nowhere, cast(CommandRunner, runner), 1.0, is_ordered=False)
    drives = [leased("one") for _ in range(DRIVES_OF_TENANT - 1)]
    for drive in drives:
        driver.start(drive)
    driver.start(replace(drives[0], lease=uuid4()))  # in place of the first one
    with driver.place("one") as last, driver.place("one") as beyond, driver.place("two") as other:
        places = (last, beyond, other)
    left = driver.has_place("one")
    driver.start(leased("one"))
    at_its_limit = (driver.has_place("one"), driver.has_place("two"))
    (ended,) = [
        task for task in asyncio.all_tasks() if str(drives[1].command_id) in task.get_name()
    ]
    ended.cancel()

    async def has_place() -> bool:
        return driver.has_place("one")

    assert places == (True, False, True)
    assert left
    assert at_its_limit == (False, True)
    await eventually("the place of the ended drive is free", has_place)


async def test_a_process_at_its_limit_has_a_place_for_no_tenant() -> None:
    runner = EndlessRunner()
    nowhere = cast(Database, None)
    driver = Driver("payments", nowhere, cast(CommandRunner, runner), 1.0, is_ordered=False)
    for number in range(DRIVES_AT_ONCE - 1):
        driver.start(leased(f"tenant {number}"))

    with driver.place("one") as last, driver.place("two") as beyond:
        assert (last, beyond) == (True, False)


async def test_a_tenant_that_a_claim_brings_to_its_limit_is_passed_over_by_the_next_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Its due commands would hide those of others, which are due later. Then a claim looks for more of its own."""
    monkeypatch.setattr(driving, "SWEEP_SECONDS", 600)
    due = [
        [leased("busy") for _ in range(DRIVES_OF_TENANT)],
        [leased("other")],
    ]
    driven: list[dict[str, int]] = []

    async def claim(*_: object, **asked: Any) -> list[Leased]:
        driven.append(dict(asked["driven"]))
        await asyncio.sleep(0)  # drives end meanwhile
        return due.pop(0) if due else []

    monkeypatch.setattr(inbox, "claim", claim)
    database = cast(Database, SlowInbox(leased()))
    runner = cast(CommandRunner, QuickRunner())
    driver = Driver("payments", database, runner, 10.0, is_ordered=False)
    sweep = asyncio.create_task(driver.sweep())
    driver.wake()

    async def claims_are_made() -> bool:
        return len(driven) >= 3

    await eventually("it claims again", claims_are_made)
    sweep.cancel()
    await asyncio.wait({sweep})

    assert driven[:2] == [{}, {"busy": DRIVES_OF_TENANT}]


async def test_the_end_of_a_drive_brings_a_claim_where_its_tenant_was_at_its_limit(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(driving, "SWEEP_SECONDS", 600)
    claims = 0

    async def claim(*_: object, **__: object) -> list[Leased]:
        nonlocal claims
        claims += 1
        return []

    monkeypatch.setattr(inbox, "claim", claim)
    database = cast(Database, SlowInbox(leased()))
    runner = EndlessRunner()
    driver = Driver("payments", database, cast(CommandRunner, runner), 10.0, is_ordered=False)
    busy, other = [leased("busy") for _ in range(DRIVES_OF_TENANT)], leased("other")
    for drive in (*busy, other):
        driver.start(drive)
    sweep = asyncio.create_task(driver.sweep())

    async def end(drive: Leased) -> None:
        (task,) = [one for one in asyncio.all_tasks() if str(drive.command_id) in one.get_name()]
        task.cancel()
        await asyncio.wait({task})
        await asyncio.sleep(0)  # the sweep is woken
        await asyncio.sleep(0)

    async def all_run() -> bool:
        return len(runner.running) == len(busy) + 1

    async def has_claimed() -> bool:
        return claims == 1

    await eventually("the drives run", all_run)
    await end(other)
    after_other = claims
    await end(busy[0])
    await eventually("a claim is made", has_claimed)
    sweep.cancel()
    await asyncio.wait({sweep})

    assert after_other == 0


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
