"""A listener on the wire between services and the broker: every byte in both directions, replies too."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from dataclasses import dataclass, field

from yarl import URL

from deploy.local.ports import LOOPBACK
from tests.support.accepting import stop_accepting

CHUNK = 65536


@dataclass
class Tap:
    amqp_url: str = field(repr=False)
    """Where services connect instead of the broker."""
    streams: list[bytearray] = field(default_factory=list, repr=False)
    """What was sent, by connection and direction."""

    @property
    def heard(self) -> bytes:
        return b"\n".join(bytes(stream) for stream in self.streams)


@contextlib.asynccontextmanager
async def tapped(amqp_url: str) -> AsyncIterator[Tap]:
    broker = URL(amqp_url)
    links: set[asyncio.Task[None]] = set()

    async def pass_on(
        reader: asyncio.StreamReader, writer: asyncio.StreamWriter, stream: bytearray
    ) -> None:
        while chunk := await reader.read(CHUNK):
            stream += chunk
            writer.write(chunk)
            await writer.drain()

    async def link(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            there_reader, there_writer = await asyncio.open_connection(broker.host, broker.port)
        except OSError:
            return
        up, down = bytearray(), bytearray()
        tap.streams += [up, down]
        try:
            ends = [
                asyncio.create_task(pass_on(reader, there_writer, up)),
                asyncio.create_task(pass_on(there_reader, writer, down)),
            ]
            _, rest = await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
            for end in rest:
                end.cancel()
            await asyncio.gather(*ends, return_exceptions=True)
        finally:
            there_writer.transport.abort()

    def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.create_task(link(reader, writer), name="tap")
        links.add(task)
        # Here, not by the link: one that is canceled before it has begun never runs.
        task.add_done_callback(lambda _: writer.transport.abort())
        task.add_done_callback(links.discard)

    server = await asyncio.start_server(accept, LOOPBACK, 0)
    port = server.sockets[0].getsockname()[1]
    tap = Tap(str(broker.with_port(port)))
    try:
        yield tap
    finally:
        await stop_accepting(server.sockets)
        server.close()
        for task in list(links):
            task.cancel()
        await asyncio.gather(*links, return_exceptions=True)
