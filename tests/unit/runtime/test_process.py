"""The life of a process."""

from __future__ import annotations

import asyncio

import pytest

from libs.runtime.process import Process
from tests.support.pace import pace


async def test_a_dead_background_task_ends_the_process() -> None:
    process = Process("tests")

    async def die() -> None:
        raise ZeroDivisionError

    async with process.background("mortal", die()), asyncio.timeout(5 * pace()):
        with pytest.raises(ZeroDivisionError):
            await process.until_failure()
