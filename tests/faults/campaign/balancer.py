"""A TCP address that leads to the first server of a list that takes the connection, as a load balancer does."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
from collections.abc import AsyncIterator, Callable, Sequence

from deploy.local.ports import LOOPBACK

CHUNK_BYTES = 65536
CONNECT_SECONDS = 2.0

Addresses = Callable[[], Sequence[int]]
"""The ports of the servers that may be tried now."""


class Balancer:
    """Connections go to the servers in turn; one that takes none is passed over."""

    def __init__(self, addresses: Addresses) -> None:
        self.port = 0
        self._addresses = addresses
        self._turns = itertools.count()
        self._links: set[asyncio.Task[None]] = set()

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
            server.close()
            self.cut()
            if self._links:
                await asyncio.wait(set(self._links))
            await server.wait_closed()

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        link = asyncio.create_task(self._link(reader, writer), name="balancer")
        self._links.add(link)
        link.add_done_callback(self._links.discard)

    async def _link(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        server = None
        try:
            if (found := await self._connect()) is not None:
                server_reader, server = found
                directions = {
                    asyncio.create_task(_forward(reader, server)),
                    asyncio.create_task(_forward(server_reader, writer)),
                }
                try:
                    await asyncio.wait(directions, return_when=asyncio.FIRST_COMPLETED)
                finally:
                    for direction in directions:
                        direction.cancel()
                    await asyncio.wait(directions)
        finally:
            writer.transport.abort()
            if server is not None:
                server.transport.abort()

    async def _connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter] | None:
        ports = list(self._addresses())
        turn = next(self._turns) % max(1, len(ports))
        for port in ports[turn:] + ports[:turn]:
            with contextlib.suppress(OSError, TimeoutError):
                async with asyncio.timeout(CONNECT_SECONDS):
                    return await asyncio.open_connection(LOOPBACK, port)
        return None


async def _forward(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(ConnectionError):
        while data := await reader.read(CHUNK_BYTES):
            writer.write(data)
            await writer.drain()


@contextlib.asynccontextmanager
async def balancer(addresses: Addresses) -> AsyncIterator[Balancer]:
    """One that listens until the block ends."""
    balancing = Balancer(addresses)
    async with balancing.open():
        yield balancing
