"""Frames that wait for the socket are taken together, and each is told of its end."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any, cast

import pytest
from aio_pika.abc import AbstractConnection
from aiormq.abc import ChannelFrame

from libs.messaging.writing import WriteQueue


def frame(payload: bytes, **what: Any) -> ChannelFrame:
    return ChannelFrame(payload=payload, **{"should_close": False, **what})


def written_together() -> asyncio.Queue[ChannelFrame]:
    queue: asyncio.Queue[ChannelFrame] = asyncio.Queue(10)
    underlay = SimpleNamespace(write_queue=queue)
    connection = SimpleNamespace(transport=SimpleNamespace(connection=underlay))
    WriteQueue(cast("AbstractConnection", connection))
    return queue


async def test_what_waits_is_taken_at_once_in_its_order() -> None:
    queue = written_together()
    for payload in (b"a", b"b", b"c"):
        queue.put_nowait(frame(payload))

    taken = await queue.get()

    assert taken.payload == b"abc"
    assert not taken.should_drain
    assert not taken.should_close
    assert queue.empty()
    queue.task_done()  # as the writer says once for what it got
    async with asyncio.timeout(1):
        await queue.join()


async def test_whoever_waits_for_the_socket_is_told() -> None:
    queue = written_together()
    drained = asyncio.get_running_loop().create_future()
    queue.put_nowait(frame(b"a"))
    queue.put_nowait(frame(b"b", drain_future=drained))

    taken = await queue.get()
    had_to_drain = taken.should_drain
    taken.drain()

    assert had_to_drain
    assert drained.done()
    assert not taken.should_drain


async def test_nothing_is_written_after_the_end() -> None:
    queue = written_together()
    for one in (frame(b"a"), frame(b"end", should_close=True), frame(b"too late")):
        queue.put_nowait(one)

    taken = await queue.get()

    assert (taken.payload, taken.should_close) == (b"aend", True)
    assert queue.qsize() == 1


async def test_who_gives_up_waiting_takes_nothing() -> None:
    queue = written_together()
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.01):
            await queue.get()

    queue.put_nowait(frame(b"a"))

    assert (await queue.get()).payload == b"a"


async def test_those_who_wait_for_room_go_on_when_what_waits_is_thrown_away() -> None:
    queue: asyncio.Queue[ChannelFrame] = asyncio.Queue(1)
    underlay = SimpleNamespace(write_queue=queue)
    connection = SimpleNamespace(transport=SimpleNamespace(connection=underlay))
    writes = WriteQueue(cast("AbstractConnection", connection))
    queue.put_nowait(frame(b"a"))
    waiting = [asyncio.create_task(queue.put(frame(b"b"))) for _ in range(3)]
    await asyncio.wait(waiting, timeout=0.01)

    async with asyncio.timeout(1):
        while not all(task.done() for task in waiting):
            writes.release()
            await asyncio.sleep(0)
    writes.release()

    assert writes.is_empty()
