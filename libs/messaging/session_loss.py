"""aio-pika cancels what waits for a session that ends; whoever waited was not cancelled, and must not end."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def session_loss_as_error() -> Iterator[None]:
    """Around whatever waits for the broker: confirms, and acks whose bytes wait for room in the socket.

    A cancellation that nobody asked for would pass for our own end, which a TaskGroup takes for success.

    Raises:
        ConnectionError: the session ended; what was under way may have arrived.
    """
    try:
        yield
    except asyncio.CancelledError:
        task = asyncio.current_task()
        if task is None or task.cancelling():
            raise
        raise ConnectionError("the session ended") from None
