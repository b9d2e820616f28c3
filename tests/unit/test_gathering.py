"""Coroutines side by side, and the task that waits for them."""

from __future__ import annotations

import asyncio

import pytest

from libs.gathering import gather_or_cancel


async def failing(error: Exception) -> int:
    await asyncio.sleep(0)
    raise error


async def waiting(ended: list[str]) -> int:
    try:
        await asyncio.Event().wait()
    finally:
        ended.append("waiting")
    return 0


async def giving(number: int) -> int:
    await asyncio.sleep(0)
    return number


async def test_results_are_in_the_order_of_the_coroutines() -> None:
    assert await gather_or_cancel(map(giving, (3, 1, 2)), name="numbers") == [3, 1, 2]


async def test_nothing_to_run_gives_nothing() -> None:
    assert await gather_or_cancel(map(giving, ()), name="numbers") == []


async def test_a_failure_cancels_the_others_and_is_raised_as_it_is() -> None:
    ended: list[str] = []

    with pytest.raises(ConnectionError, match="gone"):
        await gather_or_cancel((waiting(ended), failing(ConnectionError("gone"))), name="both")

    assert ended == ["waiting"]


async def test_failures_at_the_same_time_are_told_by_the_first_one() -> None:
    errors = [ConnectionError("first"), ConnectionError("second")]

    with pytest.raises(ConnectionError, match="first"):
        await gather_or_cancel(map(failing, errors), name="both")


async def test_a_task_whose_coroutines_failed_can_wait_with_a_deadline_afterwards() -> None:
    with pytest.raises(ConnectionError):
        await gather_or_cancel(map(failing, [ConnectionError()]), name="one")

    task = asyncio.current_task()
    assert task is not None
    assert task.cancelling() == 0
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.001):
            await asyncio.Event().wait()


async def test_a_caller_that_is_cancelled_ends_its_coroutines_first() -> None:
    ended: list[str] = []
    task = asyncio.create_task(gather_or_cancel([waiting(ended)], name="one"))
    await asyncio.sleep(0)
    await asyncio.sleep(0)

    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task

    assert ended == ["waiting"]


async def test_a_coroutine_that_is_cancelled_by_what_it_waits_for_is_no_end_of_the_caller() -> None:
    async def lost() -> int:
        raise asyncio.CancelledError

    with pytest.raises(RuntimeError, match="numbers was cancelled"):
        await gather_or_cancel([lost()], name="numbers")
