"""The errors by which the broker and the connection to it fail."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager

from aio_pika.exceptions import AMQPError, ChannelInvalidStateError
from aiormq.exceptions import InvalidFrameError

BROKER_ERRORS = (AMQPError, ChannelInvalidStateError, OSError, TimeoutError)
"""Under `session_loss_as_error`, every failure of the broker or of the connection is one of these."""


def is_refused_virtual_host(error: BaseException) -> bool:
    """Whether the broker has closed the connection instead of opening the virtual host: there is none of the name, the
    user has no permissions there, or a limit of connections is reached. aiormq 7.2 raises the same for all.
    """
    return isinstance(error, InvalidFrameError) and "Connection.OpenOk" in str(error)


@contextmanager
def session_loss_as_error() -> Iterator[None]:
    """Around each wait on the broker: publisher confirms, and acks that wait for the socket.

    aiormq ends waits on a lost connection in two ways that look like something else:

    | raised by aiormq | when |
    |---|---|
    | CancelledError, in a task that was not cancelled | heartbeats stay out, or `close()` (documented) |
    | a bare `Exception` | the broker ends the connection by FIN alone (7.2; not documented) |

    The former would pass for the end of the task, which a TaskGroup takes for success.

    Raises:
        ConnectionError: the session ended; a message under way may have arrived.
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
