"""A way to the broker that a test can silence, cut, or cut after so many bytes."""

from __future__ import annotations

import asyncio
import contextlib
import struct
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Iterator
from urllib.parse import urlsplit

from pamqp.commands import Connection
from pamqp.frame import marshal

from deploy.local.ports import LOOPBACK
from tests.support.accepting import stop_accepting

CHUNK = 65536
METHOD = 1
CANCEL_OK = (60, 31)
DECLARE_OK = (50, 11)
LEADER_SECONDS = 0.25
"""For which RabbitMQ waits for the leader of a queue, before it answers in its place."""
BLOCKED = marshal(Connection.Blocked("low on disk"), 0)
UNBLOCKED = marshal(Connection.Unblocked(), 0)


class Wire:
    """Forwards connections to the broker of `amqp_url`; `url` is the way through it."""

    def __init__(self, amqp_url: str) -> None:
        self._target = urlsplit(amqp_url)
        self._open: set[asyncio.StreamWriter] = set()
        self._clients: set[asyncio.StreamWriter] = set()
        self._links: set[asyncio.Task[None]] = set()
        self._heard = asyncio.Event()
        self._heard.set()
        self._flows = asyncio.Event()
        self._flows.set()
        self.answers_allowed: int | None = None
        """Cut the connection once the broker has sent this many bytes over it."""
        self.connections = 0
        self.sent = b""
        """All that was sent to the broker."""
        self._holds_answers = False
        self._held: dict[asyncio.StreamWriter, bytearray] = {}
        self._filters: dict[asyncio.StreamWriter, _Filter] = {}
        self.url = ""
        self.is_open = True
        """False: who connects is refused."""

    def silence(self) -> None:
        """From now on nothing of what the broker says arrives; what is sent to it does."""
        self._heard.clear()

    def stall(self) -> None:
        """From now on nothing moves, in either direction, as when a network swallows packets."""
        self._heard.clear()
        self._flows.clear()

    def hold_answers(self) -> None:
        """From now on what the broker says is kept back, until `end_without_confirms`."""
        self._holds_answers = True

    def end_without_confirms(self) -> None:
        """Pass on what was held, but for publisher confirms and for the answer to who cancels a consumer, and end each
        connection by FIN right behind it.
        """
        self._holds_answers = False
        for writer, data in self._held.items():
            passed_on = (
                frame
                for frame in _frames(bytes(data))
                if not (_confirms(frame) or _method(frame) == CANCEL_OK)
            )
            writer.write(b"".join(passed_on))
            writer.close()
        self._held.clear()

    def swallow_confirms(self) -> None:
        """From now on the connections that are open get no publisher confirm, and all else."""
        self._filters = {writer: _WithoutConfirms() for writer in self._open}

    def swallow_deliveries(self) -> None:
        """From now on the connections that are open get no message that the broker delivers, and all else."""
        self._filters = {writer: _WithoutDeliveries() for writer in self._open}

    def forget_counts(self) -> None:
        """From now on the connections that are open are told that queues have no messages and no consumers, as by a
        broker while the leaders of quorum queues do not answer.
        """
        self._filters = {writer: _WithoutCounts() for writer in self._open}

    def silence_leader(self, queue: str) -> None:
        """From now on the connections that are open are told, late, that this queue has no messages and no consumers,
        as by a broker while its leader alone does not answer.
        """
        self._filters = {writer: _WithoutLeader(queue) for writer in self._open}

    def know_counts(self) -> None:
        self._filters.clear()

    def block(self) -> None:
        """As a broker that lacks memory or disk, to connections that have published."""
        self._flows.clear()
        for client in self._clients:
            client.write(BLOCKED)

    def unblock(self) -> None:
        self._flows.set()
        for client in self._clients:
            client.write(UNBLOCKED)

    def heal(self) -> None:
        """Let everything move again."""
        self._heard.set()
        self._flows.set()

    def cut(self) -> None:
        """Break every connection; new ones can be heard again."""
        for writer in list(self._open):
            writer.transport.abort()
        self._heard.set()
        self._flows.set()

    async def _forward(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, *, to_broker: bool
    ) -> None:
        passed = 0
        with contextlib.suppress(ConnectionError):
            while data := await reader.read(CHUNK):
                if to_broker:
                    await self._flows.wait()
                    self.sent += data
                elif self._holds_answers:
                    self._held.setdefault(writer, bytearray()).extend(data)
                    continue
                else:
                    await self._heard.wait()
                    allowed = self.answers_allowed
                    if allowed is not None and passed + len(data) > allowed:
                        writer.write(data[: max(0, allowed - passed)])
                        await writer.drain()
                        break
                passed += len(data)
                if not to_broker and writer in self._filters:
                    changing = self._filters[writer]
                    data = changing.of(data)
                    await asyncio.sleep(changing.late_seconds)
                writer.write(data)
                await writer.drain()

    def accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve one connection to the wire."""
        self.connections += 1
        if not self.is_open:
            writer.transport.abort()
            return
        link = asyncio.create_task(self._link(reader, writer), name="wire")
        self._links.add(link)
        # Here, not by the link: one that is canceled before it has begun never runs.
        link.add_done_callback(lambda _: writer.transport.abort())
        link.add_done_callback(self._links.discard)

    async def end(self) -> None:
        """End every connection, one that is just being made included."""
        links = set(self._links)
        for link in links:
            link.cancel()
        await asyncio.gather(*links, return_exceptions=True)

    async def _link(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            there_reader, there_writer = await asyncio.open_connection(
                self._target.hostname, self._target.port
            )
        except OSError:
            return  # the server does not listen: the client's connection is closed
        both = {writer, there_writer}
        self._open |= both
        self._clients.add(writer)
        ways = {
            asyncio.create_task(self._forward(reader, there_writer, to_broker=True)),
            asyncio.create_task(self._forward(there_reader, writer, to_broker=False)),
        }
        try:
            await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for way in ways:
                way.cancel()
            there_writer.transport.abort()
            self._open -= both
            self._clients.discard(writer)


def _frames(data: bytes) -> Iterator[bytes]:
    """The whole frames of AMQP 0-9-1 in `data`: type, channel, size, payload, end."""
    at = 0
    while at + 7 <= len(data):
        (size,) = struct.unpack_from(">L", data, at + 3)
        if at + 8 + size > len(data):
            return
        yield data[at : at + 8 + size]
        at += 8 + size


def _method(frame: bytes) -> tuple[int, int] | None:
    """Its class and method; None of a frame with a header or a body."""
    if frame[0] != METHOD:
        return None
    class_id, method_id = struct.unpack_from(">HH", frame, 7)
    return class_id, method_id


def _confirms(frame: bytes) -> bool:
    """Whether it is Basic.Ack or Basic.Nack."""
    return _method(frame) in {(60, 80), (60, 120)}


def _without_counts(frame: bytes) -> bytes:
    """Queue.DeclareOk with zeros as its counts."""
    return frame[:-9] + bytes(8) + frame[-1:]


class _Filter(ABC):
    """What one connection is sent, without some of its frames or with others in their place."""

    def __init__(self) -> None:
        self._rest = b""
        self.late_seconds = 0.0
        """By which what was passed on last is late."""

    def of(self, data: bytes) -> bytes:
        frames = list(_frames(self._rest + data))
        self._rest = (self._rest + data)[sum(map(len, frames)) :]
        self.late_seconds = 0.0
        return b"".join(map(self._passed_on, frames))

    @abstractmethod
    def _passed_on(self, frame: bytes) -> bytes: ...


class _WithoutConfirms(_Filter):
    def _passed_on(self, frame: bytes) -> bytes:
        return b"" if _confirms(frame) else frame


class _WithoutCounts(_Filter):
    """With zeros in each Queue.DeclareOk, whose last two arguments are the counts."""

    def _passed_on(self, frame: bytes) -> bytes:
        return _without_counts(frame) if _method(frame) == DECLARE_OK else frame


class _WithoutLeader(_Filter):
    """With zeros in each Queue.DeclareOk of one queue, after the time for which RabbitMQ waits."""

    def __init__(self, queue: str) -> None:
        super().__init__()
        self._queue = bytes([len(queue)]) + queue.encode()

    def _passed_on(self, frame: bytes) -> bytes:
        if _method(frame) != DECLARE_OK or not frame.startswith(self._queue, 11):
            return frame
        self.late_seconds = LEADER_SECONDS
        return _without_counts(frame)


class _WithoutDeliveries(_Filter):
    """Without Basic.Deliver, and the header and body that follow it on its channel."""

    def __init__(self) -> None:
        super().__init__()
        self._delivering: set[bytes] = set()
        """Channels."""

    def _passed_on(self, frame: bytes) -> bytes:
        channel = frame[1:3]
        if (method := _method(frame)) is not None:
            if method == (60, 60):
                self._delivering.add(channel)
            else:
                self._delivering.discard(channel)
        return b"" if channel in self._delivering else frame


@contextlib.asynccontextmanager
async def wire_to(amqp_url: str) -> AsyncIterator[Wire]:
    """A wire that works, until the test says otherwise."""
    wire = Wire(amqp_url)
    server = await asyncio.start_server(wire.accept, LOOPBACK, 0)
    port = server.sockets[0].getsockname()[1]
    target = urlsplit(amqp_url)
    wire.url = target._replace(
        netloc=f"{target.username}:{target.password}@{LOOPBACK}:{port}"
    ).geturl()
    try:
        yield wire
    finally:
        await stop_accepting(server.sockets)
        server.close()
        await wire.end()
        await server.wait_closed()


async def is_replaced(wire: Wire, connections: int) -> bool:
    """Cuts what there is, a connection that was just being made included, until there is another one."""
    wire.cut()
    return wire.connections > connections
