"""Commands that go on until they are told to stop."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Coroutine
from typing import Any

STOPPING = (signal.SIGINT, signal.SIGTERM)


async def until_stopped(work: Coroutine[Any, Any, None]) -> None:
    """Run it until it ends. Ctrl-C and SIGTERM cancel it, wherever it waits; a second one cancels what it does then."""
    task = asyncio.create_task(work, name="until-stopped")
    loop = asyncio.get_running_loop()
    for signum in STOPPING:
        loop.add_signal_handler(signum, task.cancel)
    try:
        await asyncio.wait({task})
    finally:
        for signum in STOPPING:
            loop.remove_signal_handler(signum)
    if not task.cancelled():
        task.result()
