"""An event loop for what outlives the loops of tests, such as a connection that all tests of a worker use."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any


class LoopBeside:
    """A thread runs it while it is asked to do something, and not in between."""

    def __init__(self, name: str) -> None:
        self._thread = ThreadPoolExecutor(1, name)
        self._loop = asyncio.new_event_loop()

    def begin(self, work: Coroutine[Any, Any, None]) -> Future[None]:
        return self._thread.submit(self._loop.run_until_complete, work)

    def close(self) -> None:
        self._thread.shutdown()
        self._loop.close()
