"""A deadline that holds even for work that does not end when it is cancelled."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


async def within(seconds: float, work: Coroutine[Any, Any, T], *, name: str) -> T:
    """The result of `work`.

    For work on a connection that may be dead: a library that is cancelled in it may first wait for the other side, as
    aiormq does for the socket of a connection that it gives up; `asyncio.timeout` would wait with it. Work that goes
    on after its cancellation ends with its connection.

    Raises:
        TimeoutError: `work` took longer; it was cancelled and is not waited for.
    """
    task = asyncio.create_task(work, name=name)
    try:
        done, _ = await asyncio.wait({task}, timeout=seconds)
    except asyncio.CancelledError:
        _leave(task)
        raise
    if not done:
        _leave(task)
        raise TimeoutError(f"{name} took longer than {seconds:g} s")
    if task.cancelled():
        raise ConnectionError("the session ended")
    return task.result()


def _leave(task: asyncio.Task[Any]) -> None:
    task.add_done_callback(_retrieve)
    task.cancel()


def _retrieve(task: asyncio.Task[Any]) -> None:
    """Retrieve the error of work that is not waited for, which asyncio would report otherwise."""
    if not task.cancelled():
        task.exception()
