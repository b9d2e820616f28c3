"""The connection to RabbitMQ, rebuilt whole whenever any part of it is lost.

Parts (callers, consumers) are attached to each new connection from nothing: topology declared, channels opened,
consumers registered. So there is no state in which a connection is up and a consumer is missing: the loss of a
channel or of a consumer ends the session, and the next one has all.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Protocol

import aio_pika
import structlog
from aio_pika.abc import AbstractChannel, AbstractConnection
from aio_pika.exceptions import AMQPError, ChannelInvalidStateError

from libs.messaging.writing import write_together

HEARTBEAT_SECONDS = 10
CONNECT_SECONDS = 10
CLOSE_SECONDS = 3
RECONNECT_SECONDS = (0.1, 0.2, 0.5, 1.0)

BROKER_ERRORS = (AMQPError, ChannelInvalidStateError, OSError, TimeoutError)
"""What aio-pika raises when the broker or the way to it fails."""


class Session:
    """One connection's life."""

    def __init__(self, connection: AbstractConnection) -> None:
        self._connection = connection
        self._lost: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        connection.close_callbacks.add(lambda *_: self.lose("connection closed"))

    def lose(self, reason: str) -> None:
        """End the session; the broker then builds another."""
        if not self._lost.done():
            self._lost.set_result(reason)

    async def until_lost(self) -> str:
        return await self._lost

    async def channel(self, *, confirms: bool) -> AbstractChannel:
        """A channel whose loss, or the loss of a consumer on it, ends the session."""
        channel = self._connection.channel(publisher_confirms=confirms, on_return_raises=confirms)
        opened = await channel
        opened.close_callbacks.add(lambda *_: self.lose("channel closed"))
        underlay = await opened.get_underlay_channel()
        underlay.on_consumer_cancel_callbacks.add(lambda *_: self.lose("consumer cancelled"))
        return opened


class Part(Protocol):
    """Something that works on a connection."""

    async def attach(self, session: Session) -> None:
        """Begin to work on this session."""

    def detach(self) -> None:
        """The session is gone: fail what waits on it."""


class Broker:
    """Keeps a connection with its parts. `url` is `amqp://user:password@host:port/vhost`."""

    def __init__(self, url: str, name: str) -> None:
        self._url = url
        self._name = name
        self._parts: list[Part] = []
        self._started = asyncio.Event()
        self._ready = asyncio.Event()
        self._log = structlog.get_logger("broker")

    def add(self, part: Part) -> None:
        """Add a part; before `start`."""
        self._parts.append(part)

    async def start(self, *, wait_seconds: float = 0) -> None:
        """Connect, now that all parts are there, and keep connected until `open` is left.

        Args:
            wait_seconds: wait up to this long for the first session; afterwards it goes on trying by itself.
        """
        self._started.set()
        try:
            async with asyncio.timeout(wait_seconds):
                await self._ready.wait()
        except TimeoutError:
            self._log.warning("broker_not_there_yet")

    async def ping(self) -> None:
        """Readiness: raises while there is no whole session."""
        if not self._ready.is_set():
            raise ConnectionError("no session with the broker")

    @asynccontextmanager
    async def open(self) -> AsyncIterator[None]:
        """The life of the connection: it begins with `start` and ends with the body.

        Entered first, so that what consumes is stopped and drained while there still is a connection.
        """
        keeper = asyncio.create_task(self._keep_connected(), name="broker")
        try:
            yield
        finally:
            keeper.cancel()
            await asyncio.wait({keeper})

    async def _keep_connected(self) -> None:
        await self._started.wait()
        failures = 0
        while True:
            try:
                failures = 0 if await self._one_session() else failures + 1
            except BROKER_ERRORS as error:
                failures += 1
                self._log.warning("broker_unreachable", error=type(error).__name__)
            except (
                Exception
            ) as error:  # a fault of ours, and still no reason to stay without a broker
                failures += 1
                self._log.error("broker_session_failed", exc_info=error)
            await asyncio.sleep(RECONNECT_SECONDS[min(failures, len(RECONNECT_SECONDS) - 1)])

    async def _one_session(self) -> bool:
        """Connect, attach the parts, and stay until something is lost; true when it was whole."""
        async with asyncio.timeout(CONNECT_SECONDS):
            connection = await aio_pika.connect(
                self._url,
                heartbeat=HEARTBEAT_SECONDS,
                client_properties=_properties(self._name),
            )
        try:
            write_together(connection)
            session = Session(connection)
            async with asyncio.timeout(CONNECT_SECONDS):
                for part in self._parts:
                    await part.attach(session)
            self._ready.set()
            self._log.info("broker_session")
            reason = await session.until_lost()
            self._log.warning("broker_session_lost", reason=reason)
            return True
        finally:
            self._ready.clear()
            for part in self._parts:
                part.detach()
            await asyncio.wait(
                {asyncio.create_task(_close(connection), name="broker-close")},
                timeout=CLOSE_SECONDS,
            )


async def _close(connection: AbstractConnection) -> None:
    with contextlib.suppress(*BROKER_ERRORS):  # it is gone, which is what was wanted
        await connection.close()


def _properties(name: str) -> dict[str, Any]:
    return {"connection_name": f"bankside-{name}"}
