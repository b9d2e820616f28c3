"""A TCP address that leads to one of several servers, as a load balancer's does."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
from collections.abc import AsyncIterator, Callable, Sequence

from deploy.local.ports import LOOPBACK
from tests.support.accepting import stop_accepting
from tests.support.pace import pace

CHUNK_BYTES = 65536
CONNECT_SECONDS = 2.0

Addresses = Callable[[], Sequence[int]]
"""The ports of the servers that may be tried now."""


class Balancer:
    """Connections go to the servers in turn.

    Args:
        tries: how many servers are tried for a connection, of which the others take none; None: each of them.
    """

    def __init__(self, addresses: Addresses, tries: int | None = None) -> None:
        self.port = 0
        self.refused = 0
        """Connections that were closed because no server took them."""
        self._addresses = addresses
        self._tries = tries
        self._turns = itertools.count()
        self._links: set[asyncio.Task[None]] = set()
        self._opened: list[asyncio.StreamWriter] = []

    def cut(self) -> None:
        """End every connection, as a balancer does whose servers were replaced."""
        for link in self._links:
            link.cancel()

    @contextlib.asynccontextmanager
    async def open(self) -> AsyncIterator[None]:
        server = await asyncio.start_server(self._accept, LOOPBACK, 0)
        self.port = server.sockets[0].getsockname()[1]
        try:
            yield
        finally:
            await stop_accepting(server.sockets)
            server.close()
            self.cut()
            if self._links:
                await asyncio.wait(set(self._links))
            for end in self._opened:
                end.transport.abort()
            await server.wait_closed()

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._opened.append(writer)
        link = asyncio.create_task(self._link(reader, writer), name="balancer")
        self._links.add(link)
        # Here, not by the link: one that is cut before it has begun never runs.
        link.add_done_callback(lambda _: writer.close())
        link.add_done_callback(self._links.discard)

    async def _link(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        found = await self._connect()
        if found is None:
            self.refused += 1
            return
        server_reader, server = found
        self._opened.append(server)
        directions = {
            asyncio.create_task(_forward(reader, server)),
            asyncio.create_task(_forward(server_reader, writer)),
        }
        try:
            await asyncio.wait(directions, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for direction in directions:
                direction.cancel()
            server.close()

    async def _connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter] | None:
        ports = list(self._addresses())
        turn = next(self._turns) % max(1, len(ports))
        for port in (ports[turn:] + ports[:turn])[: self._tries]:
            with contextlib.suppress(OSError, TimeoutError):
                async with asyncio.timeout(CONNECT_SECONDS * pace()):
                    return await asyncio.open_connection(LOOPBACK, port)
        return None


async def _forward(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(ConnectionError):
        while data := await reader.read(CHUNK_BYTES):
            writer.write(data)
            await writer.drain()


@contextlib.asynccontextmanager
async def balancer(addresses: Addresses, tries: int | None = None) -> AsyncIterator[Balancer]:
    """One that listens until the block ends."""
    balancing = Balancer(addresses, tries)
    async with balancing.open():
        yield balancing
