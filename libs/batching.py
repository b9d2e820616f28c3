"""Grouping single submissions into batches.

A batch begins as soon as there is a submission; those that arrive while it is under way form the next one. So an idle
system acts at once, and a busy one makes few calls with many items each.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from typing import Generic, TypeVar

Item = TypeVar("Item")
Answer = TypeVar("Answer")


class TooManyWaiting(Exception):
    """The batcher's queue is full."""


class Batcher(Generic[Item, Answer]):
    """Groups single submissions into calls of `run`, which answers each item, in order.

    Args:
        run: takes 1 to `limit` items; an exception that it raises is raised for each of them.
        limit: the most items in a call.
        concurrency: the most calls under way.
        waiting: the most items that wait.
    """

    def __init__(
        self,
        run: Callable[[list[Item]], Awaitable[Sequence[Answer]]],
        *,
        name: str,
        limit: int,
        concurrency: int = 1,
        waiting: int = 10_000,
    ) -> None:
        self._run = run
        self._name = name
        self._limit = limit
        self._idle = concurrency
        self._waiting = waiting
        self._queue: deque[tuple[Item, asyncio.Future[Answer]]] = deque()
        self._tasks: set[asyncio.Task[None]] = set()

    async def submit(self, item: Item) -> Answer:
        """The answer to `item`.

        Raises:
            TooManyWaiting: the queue is full; nothing was done.
        """
        if len(self._queue) >= self._waiting:
            raise TooManyWaiting(self._name)
        answer: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        self._queue.append((item, answer))
        if self._idle:
            self._idle -= 1
            task = asyncio.create_task(self._work(), name=self._name)
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        return await answer

    async def _work(self) -> None:
        try:
            while self._queue:
                await self._run_batch()
        finally:
            self._idle += 1

    async def _run_batch(self) -> None:
        batch: list[tuple[Item, asyncio.Future[Answer]]] = []
        while self._queue and len(batch) < self._limit:
            item, future = self._queue.popleft()
            if not future.done():  # its caller gave up while it waited
                batch.append((item, future))
        if not batch:
            return
        try:
            answers = await self._run([item for item, _ in batch])
            if len(answers) != len(batch):
                raise RuntimeError(f"{self._name}: {len(answers)} answers to {len(batch)} items")
        except BaseException as error:
            for _, future in batch:
                if not future.done():
                    future.set_exception(
                        error if isinstance(error, Exception) else ConnectionError("shut down")
                    )
            if not isinstance(error, Exception):
                raise
            return
        for (_, future), answer in zip(batch, answers, strict=True):
            if not future.done():
                future.set_result(answer)
