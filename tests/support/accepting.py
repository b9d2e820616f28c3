"""The end of a server that a test has opened: no connection of it outlives the test's event loop."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Protocol

_TURNS_OF_AN_ACCEPT = 5
"""Turns of the loop: more than from accepting a connection until its protocol has it."""


class Listener(Protocol):
    def fileno(self) -> int: ...


async def stop_accepting(listeners: Iterable[Listener]) -> None:
    """Accept no more connections; those that were accepted have their protocols. Then the server may be closed.

    One that is closed before leaves a connection open that it has accepted in the turn before: CPython 3.11 attaches
    none to a closed server. The next collection of garbage then fails another test.
    """
    loop = asyncio.get_running_loop()
    for listener in listeners:
        loop.remove_reader(listener.fileno())
    for _ in range(_TURNS_OF_AN_ACCEPT):
        await asyncio.sleep(0)
