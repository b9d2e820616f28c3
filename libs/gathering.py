"""Several coroutines side by side, of which the first failure is the reason that the others are given up.

It stands in place of `asyncio.TaskGroup` in tasks that go on after a failure. Before Python 3.13 a TaskGroup whose task
fails while the group waits for its end leaves a request to cancel behind at the task that waits
(`Task.cancelling()` stays 1). Before Python 3.11.3 each later `asyncio.timeout` of that task then raises CancelledError
in place of TimeoutError, so that a background task ends and nothing says so.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterable, Sequence
from typing import Any, TypeVar

ResultT = TypeVar("ResultT")


async def gather_or_cancel(
    coroutines: Iterable[Coroutine[Any, Any, ResultT]], *, name: str
) -> list[ResultT]:
    """Run all of them, in tasks that begin in this order; their results in this order.

    When one fails the others are cancelled and awaited, as they are when the caller is cancelled.

    Args:
        name: of the tasks.

    Raises:
        What the first one that failed has raised.
    """
    tasks = [asyncio.create_task(coroutine, name=name) for coroutine in coroutines]
    try:
        if tasks:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_EXCEPTION)
        failures = [error for task in tasks if (error := _failure(task)) is not None]
    finally:
        await _cancelled(tasks)
    if failures:
        raise failures[0]
    if any(task.cancelled() for task in tasks):
        raise RuntimeError(f"{name} was cancelled by what it waited for")
    return [task.result() for task in tasks]


def _failure(task: asyncio.Task[Any]) -> BaseException | None:
    return task.exception() if task.done() and not task.cancelled() else None


async def _cancelled(tasks: Sequence[asyncio.Task[Any]]) -> None:
    under_way = [task for task in tasks if not task.done()]
    for task in under_way:
        task.cancel()
    if under_way:
        await asyncio.wait(under_way)
    for task in tasks:
        _failure(task)
