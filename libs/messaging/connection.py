"""A connection to RabbitMQ that can always be ended, together with every wait on it.

aio-pika opens its connections and channels by aiormq, which has the documented means for that: the socket is opened
here (`aiormq.TransportFactory`), so that it can be aborted. Messages that pamqp cannot decode do not end a connection
(`libs.messaging.undecodable`). One thing is bent here, for aiormq 7.2, which `pyproject.toml` therefore bounds:

    At most `aiormq.Connection.FRAME_BUFFER_SIZE` = 10 frames wait for the socket. The sender of an eleventh waits for a
    place, which a dead connection never makes; `close` does not end that wait.

Here it is 0, no limit. Frames are bounded by their senders (`libs.messaging.publishing`, prefetch), whose waits for the
socket `close` does end, and those of senders that gave up by the session's watch, which ends a connection that is not
read after 15 s. `tests/integration/test_connection.py` fails when either no longer holds.
"""

from __future__ import annotations

import asyncio
import ssl
from typing import Any

import aio_pika
import aiormq
import structlog
from yarl import URL

from libs.messaging.undecodable import tolerate_undecodable
from libs.tls import client_context

CLOSE_SECONDS = 3.0

aiormq.Connection.FRAME_BUFFER_SIZE = 0
tolerate_undecodable()


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


class Connection(aio_pika.Connection):
    """aio-pika's connection, on a socket of ours."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._socket = _Transport()
        self.kwargs["transport_factory"] = self._socket

    async def is_blocked(self) -> bool:
        """Whether RabbitMQ reads nothing from it, for lack of memory or disk. It says so (`connection.blocked`) to a
        connection that publishes meanwhile.
        """
        if self.transport is None:
            return False
        ready = asyncio.ensure_future(self.transport.ready())  # is not, while it is blocked
        await asyncio.wait({ready}, timeout=0)
        return ready.cancel()

    async def end(self, *, politely: bool) -> None:
        """Close the connection; within twice `CLOSE_SECONDS` no wait on it is left.

        Args:
            politely: close it with the broker, by AMQP, before the socket is aborted.
        """
        closing = asyncio.create_task(self._close(), name="broker-close")
        try:
            if politely:
                await asyncio.wait({closing}, timeout=CLOSE_SECONDS)
        finally:
            self._socket.abort()
        await asyncio.wait({closing}, timeout=CLOSE_SECONDS)
        if not closing.done():
            closing.cancel()
            structlog.get_logger("broker").error("connection_not_closed")

    async def _close(self) -> None:
        try:
            await self.close()
        except Exception as error:  # the connection is gone, as it should be
            structlog.get_logger("broker").debug("closed", error=type(error).__name__)


def encryption_of(url: str, ca_file: str | None) -> ssl.SSLContext | None:
    """Raises BadCertificates. Arguments in the URL, such as `no_verify_ssl`, change nothing of it."""
    return client_context(ca_file) if URL(url).scheme == "amqps" else None


async def connect(
    url: str, name: str, *, heartbeat_seconds: int, ca_file: str | None = None
) -> Connection:
    """A connection that `Connection.end` ends; by TLS (`libs.tls`) when the URL begins with `amqps:`.

    Raises:
        AMQPError, OSError: the broker is not reached, or refuses, or is not the one of its certificate.
    """
    return await aio_pika.connect(
        url,
        connection_class=Connection,
        ssl_context=encryption_of(url, ca_file),
        heartbeat=heartbeat_seconds,
        client_properties={"connection_name": f"bankside-{name}"},
    )
