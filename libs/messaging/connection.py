"""A connection to RabbitMQ that can always be ended, together with every wait on it.

aiormq has the documented means for that: the socket is opened here (`aiormq.TransportFactory`), so that it can be
aborted. One thing is bent, for aiormq 7.2, which `pyproject.toml` therefore bounds:

    At most `aiormq.Connection.FRAME_BUFFER_SIZE` = 10 frames wait for the socket. The sender of an eleventh waits for a
    place, which a dead connection never makes; `close` does not end that wait.

Here it is 0, no limit: frames are bounded by their senders (`libs.messaging.publishing`, prefetch), whose waits for the
socket `close` does end. `tests/integration/test_connection.py` fails when either no longer holds.
"""

from __future__ import annotations

import asyncio
from typing import Any

import aiormq
import structlog
from yarl import URL

CLOSE_SECONDS = 3.0


class _Transport(aiormq.TransportFactory):
    """Opens the socket and can abort it."""

    def __init__(self) -> None:
        self._writer: asyncio.StreamWriter | None = None

    async def create(
        self, url: URL, **kwargs: Any
    ) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        certificates: aiormq.SSLContextProvider = kwargs.pop("ssl_context_provider")
        context = await certificates.get_context() if url.scheme == "amqps" else None
        reader, self._writer = await asyncio.open_connection(
            url.host, url.port, ssl=context, **kwargs
        )
        return reader, self._writer

    def abort(self) -> None:
        """Drop the connection at once, and with it the bytes that were not sent."""
        if self._writer is not None:
            self._writer.transport.abort()


class Connection(aiormq.Connection):
    """aiormq's connection, on a socket of ours."""

    FRAME_BUFFER_SIZE = 0

    def __init__(self, url: URL, *, name: str) -> None:
        self._socket = _Transport()
        super().__init__(
            url,
            transport_factory=self._socket,
            client_properties={"connection_name": f"bankside-{name}"},
        )

    async def end(self, *, politely: bool) -> None:
        """Close the connection; within twice `CLOSE_SECONDS` no wait on it is left.

        Args:
            politely: close it with the broker, by AMQP, before the socket is aborted.
        """
        closing = asyncio.create_task(
            self.close(aiormq.ConnectionClosed(0, "closed")), name="broker-close"
        )
        if politely:
            await asyncio.wait({closing}, timeout=CLOSE_SECONDS)
        self._socket.abort()
        await asyncio.wait({closing}, timeout=CLOSE_SECONDS)
        if not closing.done():
            closing.cancel()
            structlog.get_logger("broker").error("connection_not_closed")

    def abort(self) -> None:
        """Drop the connection at once."""
        self._socket.abort()


async def connect(url: str, name: str, *, heartbeat_seconds: int) -> Connection:
    """A connection that `Connection.end` ends.

    Raises:
        AMQPError, OSError: the broker is not reached or refuses.
    """
    connection = Connection(URL(url).update_query(heartbeat=heartbeat_seconds), name=name)
    try:
        await connection.connect()
    except BaseException:
        connection.abort()
        raise
    return connection
