"""A deadline that holds even for work that does not end when it is cancelled."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


async def within(seconds: float, work: Coroutine[Any, Any, T], *, name: str) -> T:
    """The result of `work`.

    For requests to the broker: when aiormq is cancelled in one, it waits for room in the connection's write queue,
    which a connection that died never makes. `asyncio.timeout` would wait with it. The work that is left behind here
    ends with its connection (`libs.messaging.connection`).

    Raises:
        TimeoutError: it took longer, was cancelled, and is left to itself.
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
    """Its error was answered by the deadline already; asyncio must not report it as forgotten."""
    if not task.cancelled():
        task.exception()
