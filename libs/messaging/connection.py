"""A connection to RabbitMQ that can always be ended, together with everything that waits on it.

aiormq closes politely: it writes a last frame and waits until the socket has taken it, which a peer that reads nothing
never lets happen, and it does not release those who wait for room in its write queue. So the socket is ours
(`aiormq.TransportFactory`), to be aborted, and the queue is emptied afterwards.
"""

from __future__ import annotations

import asyncio
from typing import Any

import aio_pika
import aiormq
import structlog
from yarl import URL

from libs.messaging.writing import WriteQueue

CLOSE_SECONDS = 3.0
RELEASE_SECONDS = 0.02


class _Transport(aiormq.TransportFactory):
    """Opens the socket and keeps hold of it."""

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
        """Drop the connection at once, and what is not yet sent with it."""
        if self._writer is not None:
            self._writer.transport.abort()


class Connection(aio_pika.Connection):
    """aio-pika's connection, on a socket of ours."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.socket = _Transport()
        self.kwargs["transport_factory"] = self.socket
        self.writes: WriteQueue | None = None

    async def end(self, *, politely: bool) -> None:
        """Close it; within twice `CLOSE_SECONDS` nothing waits on it any more.

        Args:
            politely: let the broker be told first.
        """
        closing = asyncio.create_task(self._close(), name="broker-close")
        if politely:
            await asyncio.wait({closing}, timeout=CLOSE_SECONDS)
        self.socket.abort()
        loop = asyncio.get_running_loop()
        until = loop.time() + CLOSE_SECONDS
        while True:
            if self.writes is not None:
                self.writes.release()
            await asyncio.wait({closing}, timeout=RELEASE_SECONDS)
            if (closing.done() and not self._holds_writes()) or loop.time() > until:
                break
        if not closing.done():
            closing.cancel()
            structlog.get_logger("broker").error("connection_not_closed")

    def _holds_writes(self) -> bool:
        return self.writes is not None and not self.writes.is_empty()

    async def _close(self) -> None:
        try:
            await self.close()
        except Exception as error:  # it is gone, which is what was wanted
            structlog.get_logger("broker").debug("closed", error=type(error).__name__)


async def connect(url: str, name: str, *, heartbeat_seconds: int) -> Connection:
    """Raises what aio-pika raises when the broker is not reached."""
    connection = await aio_pika.connect(
        url,
        connection_class=Connection,
        heartbeat=heartbeat_seconds,
        client_properties={"connection_name": f"bankside-{name}"},
    )
    connection.writes = WriteQueue(connection)
    return connection
