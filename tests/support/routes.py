"""A TCP route to a server, through a proxy of the test: it can be stalled, resumed, renewed and cut.

    async with route_to(environment.amqp_url) as route:
        ... start a service with route.url in place of environment.amqp_url ...
        route.stall()
        route.renew()

A stalled route passes no byte and no end of a connection, as a network does that drops packets: neither side gets FIN
or RST. What one side sends meanwhile is accepted by the proxy's operating system, so that neither TCP keepalives nor
`tcp_user_timeout` notice the stall: only a deadline of the application does. A server that would notice by them is told
by `renew` after that time; its client is not.

| afterwards | connections that were open or came during the stall | new connections |
|---|---|---|
| `resume` | pass everything, late bytes included | pass |
| `renew` | stay stalled until the block ends: their peer has vanished | pass |
| `cut` | are closed, without late bytes | pass |
| `refuse` | are closed, without late bytes | are closed, until `accept` |
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Iterable
from enum import Enum
from urllib.parse import urlsplit

from deploy.local.ports import LOOPBACK
from tests.support.accepting import stop_accepting

CHUNK_BYTES = 65536


class Direction(Enum):
    TO_SERVER = "to_server"
    FROM_SERVER = "from_server"


BOTH = frozenset(Direction)


class _Path:
    """What the connections of one time share: each direction passes, or is stalled."""

    def __init__(self) -> None:
        self._passing = {direction: asyncio.Event() for direction in Direction}
        self.resume()

    def stall(self, directions: frozenset[Direction]) -> None:
        for direction in directions:
            self._passing[direction].clear()

    def resume(self) -> None:
        for passing in self._passing.values():
            passing.set()

    async def until_passing(self, direction: Direction) -> None:
        await self._passing[direction].wait()


class Route:
    """Forwards connections to the server of a URL; `url` is the same URL through the proxy."""

    def __init__(self, server_url: str) -> None:
        self._server = urlsplit(server_url)
        self._path = _Path()
        self._is_refusing = False
        self._links: set[asyncio.Task[None]] = set()
        self._ends: set[asyncio.StreamWriter] = set()
        self._server_ends: set[asyncio.StreamWriter] = set()
        self._opened: list[asyncio.StreamWriter] = []
        """All ends there ever were: one that is closed stays open while its peer does not read."""
        self.url = ""

    def stall(self, directions: frozenset[Direction] = BOTH) -> None:
        """From now on nothing passes in these directions, on open connections and on new ones."""
        self._path.stall(directions)

    def resume(self) -> None:
        """All connections go on, with what was sent into the stall."""
        self._path.resume()

    def renew(self, keepalive_seconds: float | None = None) -> None:
        """Connections that exist are stalled in both directions for good; new ones pass.

        Args:
            keepalive_seconds: the server's side of those that exist is closed after this, as by its TCP keepalives.
        """
        self._path.stall(BOTH)
        self._path = _Path()
        if keepalive_seconds is not None:
            gone = set(self._server_ends)
            asyncio.get_running_loop().call_later(keepalive_seconds, _abort_all, gone)

    def cut(self) -> None:
        """Close every connection, without what waits in it; new ones pass."""
        for end in self._ends:
            end.transport.abort()
        for link in self._links:
            link.cancel()
        self._path = _Path()

    def refuse(self) -> None:
        """Close every connection, and each new one at once, until `accept`."""
        self._is_refusing = True
        self.cut()

    def accept(self) -> None:
        """After `refuse`: new connections pass."""
        self._is_refusing = False

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self._is_refusing:
            writer.transport.abort()
            return
        # Here, not by the link: one that is cut before it has begun never runs.
        self._ends.add(writer)
        self._opened.append(writer)
        link = asyncio.create_task(self._link(reader, writer), name="route")
        self._links.add(link)
        link.add_done_callback(self._links.discard)

    async def _link(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        path = self._path
        try:
            await path.until_passing(Direction.TO_SERVER)
            await self._connect(path, reader, writer)
        finally:
            writer.close()
            self._ends.discard(writer)

    async def _connect(
        self, path: _Path, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        try:
            server_reader, server_writer = await asyncio.open_connection(
                self._server.hostname, self._server.port
            )
        except OSError:
            return  # the server does not listen: the client's connection is closed
        self._ends.add(server_writer)
        self._opened.append(server_writer)
        self._server_ends.add(server_writer)
        directions = {
            asyncio.create_task(_forward(path, Direction.TO_SERVER, reader, server_writer)),
            asyncio.create_task(_forward(path, Direction.FROM_SERVER, server_reader, writer)),
        }
        try:
            await asyncio.wait(directions, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for direction in directions:
                direction.cancel()
            server_writer.close()
            self._ends.discard(server_writer)
            self._server_ends.discard(server_writer)

    @contextlib.asynccontextmanager
    async def open(self) -> AsyncIterator[None]:
        """Listen until the block ends."""
        server = await asyncio.start_server(self._accept, LOOPBACK, 0)
        host, port = server.sockets[0].getsockname()
        login = self._server.netloc.rpartition("@")[0]
        self.url = self._server._replace(netloc=f"{login}@{host}:{port}").geturl()
        try:
            yield
        finally:
            await stop_accepting(server.sockets)
            server.close()
            links = set(self._links)
            self.cut()
            if links:
                await asyncio.wait(links)
            _abort_all(self._opened)
            await server.wait_closed()


def _abort_all(ends: Iterable[asyncio.StreamWriter]) -> None:
    for end in ends:
        end.transport.abort()


async def _forward(
    path: _Path,
    direction: Direction,
    reader: asyncio.StreamReader,
    writer: asyncio.StreamWriter,
) -> None:
    """Pass bytes on until one end closes; the end of a connection waits for the path as bytes do."""
    with contextlib.suppress(ConnectionError):
        while data := await _read(reader):
            await path.until_passing(direction)
            writer.write(data)
            await writer.drain()
    await path.until_passing(direction)


async def _read(reader: asyncio.StreamReader) -> bytes:
    try:
        return await reader.read(CHUNK_BYTES)
    except ConnectionError:
        return b""


@contextlib.asynccontextmanager
async def route_to(server_url: str) -> AsyncIterator[Route]:
    """A route that passes everything, until the test says otherwise."""
    route = Route(server_url)
    async with route.open():
        yield route
