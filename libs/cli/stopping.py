"""Commands that go on until they are told to stop."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Coroutine
from typing import Any


async def until_stopped(work: Coroutine[Any, Any, None]) -> None:
    """Run it until it ends. Ctrl-C and SIGTERM cancel it, wherever it waits; a second one cancels what it does then."""
    task = asyncio.create_task(work, name="until-stopped")
    for signum in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(signum, task.cancel)
    await asyncio.wait({task})
    if not task.cancelled():
        task.result()
