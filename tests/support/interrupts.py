"""Ctrl-C in a process that runs tests: it raises KeyboardInterrupt, as Python's own handler of SIGINT does.

`asyncio.Runner` replaces Python's own for each test and each fixture, and puts it back. Up to Python 3.11
`signal.signal` formats the handler that it replaces, and with it the task of that handler and the task's result: in
tests on a stack that is a fixture's value with every event so far. A handler that is not Python's own stays as it is.
"""

from __future__ import annotations

import signal
import threading
from types import FrameType


def keep_interrupts() -> None:
    """Before each test: an event loop in which a test handles SIGINT puts Python's own handler back at its end."""
    if (
        signal.getsignal(signal.SIGINT) is signal.default_int_handler
        and threading.current_thread() is threading.main_thread()
    ):
        signal.signal(signal.SIGINT, _interrupt)


def _interrupt(signum: int, frame: FrameType | None) -> None:
    signal.default_int_handler(signum, frame)
