"""Batches of writes: requests that wait at the same moment share one transaction with one commit.

One account's requests have to follow one another, and so do the entries of a feed. One transaction for each would make
every one wait for the commits of all before it; together they share one, and the more of them there are, the larger the
share.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from dataclasses import dataclass, field
from typing import Any, NoReturn

from libs.runtime.crash import crash_point
from services.provider_sandbox.database import QUEUE_SECONDS, Database
from services.provider_sandbox.idempotency import Answer, Request, answer_all_once
from services.provider_sandbox.operations import BatchedWrite, Body, Refusal

AT_ONCE = 200
"""Requests in one transaction: each stays far below the time that a statement may take."""
MOST_WAITING = 10_000


@dataclass
class _Waiting:
    request: Request
    body: Body
    answer: asyncio.Future[Answer]
    since: float = field(default_factory=time.monotonic)

    def fail(self, error: Exception) -> None:
        if not self.answer.done():
            self.answer.set_exception(error)

    def succeed(self, outcome: Answer | Refusal) -> None:
        if isinstance(outcome, Refusal):
            self.fail(outcome)
        elif not self.answer.done():
            self.answer.set_result(outcome)


class WriteBatcher:
    """The requests of one operation. They are taken in the order in which they came."""

    def __init__(self, database: Database, operation: BatchedWrite[Any]) -> None:
        self.name = operation.name
        self._database = database
        self._handle = operation.handle
        self._waiting: deque[_Waiting] = deque()
        self._arrived = asyncio.Event()

    async def answer(self, request: Request, body: Body) -> Answer:
        """Wait for the answer. Raises Refusal where none is kept; TimeoutError before any effect when too many wait."""
        if len(self._waiting) >= MOST_WAITING:
            raise TimeoutError("too many requests are waiting")
        waiting = _Waiting(request, body, asyncio.get_running_loop().create_future())
        self._waiting.append(waiting)
        self._arrived.set()
        return await waiting.answer

    async def run(self) -> NoReturn:
        """Carry out what arrives, for ever."""
        while True:
            await self._arrived.wait()
            together = self._take()
            try:
                outcomes = await self._carry_out(together)
            except Exception as error:  # every caller gets it, and answers or logs it as its own
                for waiting in together:
                    waiting.fail(error)
            else:
                for waiting, outcome in zip(together, outcomes, strict=True):
                    waiting.succeed(outcome)

    def _take(self) -> list[_Waiting]:
        """The next batch. Requests that have waited too long fail with TimeoutError instead."""
        together: list[_Waiting] = []
        too_long_ago = time.monotonic() - QUEUE_SECONDS
        while self._waiting and len(together) < AT_ONCE:
            waiting = self._waiting.popleft()
            if waiting.since < too_long_ago:
                waiting.fail(TimeoutError("the bank is too busy"))
            else:
                together.append(waiting)
        if not self._waiting:
            self._arrived.clear()
        return together

    async def _carry_out(self, together: list[_Waiting]) -> list[Answer | Refusal]:
        if not together:
            return []
        bodies: dict[str, Body] = {}
        for waiting in together:
            bodies.setdefault(waiting.request.key, waiting.body)
        async with self._database.transaction() as connection:
            outcomes = await answer_all_once(
                connection,
                [waiting.request for waiting in together],
                lambda keys: self._handle(connection, [(key, bodies[key]) for key in keys]),
            )
            crash_point("sandbox.uncommitted")
        crash_point("sandbox.committed")
        return outcomes
