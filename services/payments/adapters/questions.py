"""One question under way at a time about the same thing, however many want to know: a crowd of wires from one account
whose owner is not known yet asks once.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Hashable

from libs.contracts.errors import NotFound


class Questions:
    def __init__(self) -> None:
        self._under_way: dict[Hashable, asyncio.Task[None]] = {}

    async def ask(self, about: Hashable, ask: Callable[[], Awaitable[None]]) -> None:
        """Raises what `ask` raises. It goes on when whoever asked first gives up: others may wait for it."""
        earlier = self._under_way.get(about)
        if earlier is not None:
            with contextlib.suppress(NotFound):  # it may be there since that was asked
                await asyncio.shield(earlier)
                return
        question = self._under_way.get(about) or self._begin(about, ask)
        await asyncio.shield(question)

    def _begin(self, about: Hashable, ask: Callable[[], Awaitable[None]]) -> asyncio.Task[None]:
        async def once() -> None:
            await ask()

        question = asyncio.create_task(once(), name=f"question:{about}")
        self._under_way[about] = question
        question.add_done_callback(lambda done: self._answered(about, done))
        return question

    def _answered(self, about: Hashable, question: asyncio.Task[None]) -> None:
        del self._under_way[about]
        if not question.cancelled():
            question.exception()  # those who gave up do not look at it
