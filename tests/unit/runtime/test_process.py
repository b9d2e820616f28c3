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


async def test_a_background_task_that_is_cancelled_by_what_it_waits_for_ends_the_process() -> None:
    process = Process("tests")

    async def lost() -> None:
        task = asyncio.current_task()
        assert task is not None
        task.cancel()  # as a library that leaves a request to cancel behind
        await asyncio.sleep(0)

    async with process.background("lost", lost()), asyncio.timeout(5 * pace()):
        with pytest.raises(RuntimeError, match="cancelled by what it waited for"):
            await process.until_failure()


async def test_a_background_task_that_ends_with_its_body_is_no_failure() -> None:
    process = Process("tests")

    async with process.background("lasting", asyncio.Event().wait()):  # type: ignore[arg-type]
        await asyncio.sleep(0)

    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.01):
            await process.until_failure()


async def test_a_failure_is_told_after_another_waiter_was_cancelled() -> None:
    process = Process("tests")
    waiter = asyncio.create_task(process.until_failure())
    await asyncio.sleep(0)
    waiter.cancel()
    await asyncio.wait({waiter})

    process.fail(ZeroDivisionError())

    with pytest.raises(ZeroDivisionError):
        await process.until_failure()
