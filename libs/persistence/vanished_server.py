"""A server that vanished without FIN or RST: after one timeout, all connections opened before it are in doubt."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from contextlib import contextmanager

DOUBT_SECONDS = 5.0
"""A connection whose use is given up after this time or later may have lost its server."""


class ConnectionDoubt:
    """The moment before which connections are doubted: they are replaced instead of used.

    Without it, each connection to a vanished server would cost its next user a timeout of its own.
    """

    def __init__(self) -> None:
        self._doubted_at = float("-inf")

    def is_doubted(self, opened_at: float) -> bool:
        """Whether to replace a connection that was opened at `opened_at` (monotonic clock)."""
        return opened_at < self._doubted_at

    @contextmanager
    def watching(self, opened_at: float) -> Iterator[None]:
        """The use of one connection: its timeout or cancellation after `DOUBT_SECONDS` starts the doubt.

        A connection that is already doubted says nothing of those opened since.
        """
        began = time.monotonic()
        try:
            yield
        except (TimeoutError, asyncio.CancelledError):
            if time.monotonic() - began >= DOUBT_SECONDS and not self.is_doubted(opened_at):
                self._doubted_at = time.monotonic()
            raise
