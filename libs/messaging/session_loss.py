"""The end of a session, told as one error to everything that waits on it.

aiormq ends such waits in two ways that look like something else: it cancels them, although their task was not
cancelled, or it raises a bare `Exception` when the broker ends the connection by FIN.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def session_loss_as_error() -> Iterator[None]:
    """Around each wait on the broker: confirms, and acks whose bytes wait for room in the socket.

    A cancellation that our task did not ask for would pass for its own end, which a TaskGroup takes for success.

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
    except Exception as error:
        if type(error) is not Exception:
            raise
        raise ConnectionError("the session ended") from error
