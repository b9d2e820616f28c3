"""Driving commands that are leased to a process."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import cast
from uuid import uuid4

from libs.handling.driving import DRIVES_AT_ONCE, Driver
from libs.handling.running import CommandRunner
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


async def test_a_drive_ends_when_its_process_claims_the_command_again() -> None:
    """As when its lease ran out because no connection was free to renew it."""
    runner = EndlessRunner()
    nowhere = cast(Database, None)
    driver = Driver("payments", nowhere, cast(CommandRunner, runner), 1.0, is_ordered=False)
    first = Leased(uuid4(), "payments.send_wire", "m", "r", b"", b"", None, 0.0, 1, uuid4())
    again = replace(first, lease=uuid4())

    async def run(*leased: Leased) -> bool:
        return runner.running == [*leased]

    driver.start(first)
    await eventually("the first drive runs", lambda: run(first))
    driver.start(again)
    await eventually("the second one alone runs", lambda: run(again))

    assert driver.capacity == DRIVES_AT_ONCE - 1
