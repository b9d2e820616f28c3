"""The route that tests put between a service and a server: what passes, what waits, and what is never told."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field

import pytest
import pytest_asyncio

from deploy.local.ports import LOOPBACK
from tests.support.accepting import stop_accepting
from tests.support.pace import pace
from tests.support.routes import Direction, Route, route_to
from tests.support.waiting import eventually

STALLED_SECONDS = 0.2
"""Far longer than a byte takes over loopback."""
TURNS = 12
"""Of the event loop: more than it takes from a connection's request to its link."""


@dataclass
class Echo:
    """A server that sends back what it receives."""

    received: bytes = b""
    open_connections: int = 0
    connections: int = 0
    url: str = ""
    writers: list[asyncio.StreamWriter] = field(default_factory=list)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        self.open_connections += 1
        self.writers.append(writer)
        try:
            while data := await reader.read(100):
                self.received += data
                writer.write(data)
                await writer.drain()
        except ConnectionError:
            pass  # a route that was cut
        finally:
            self.open_connections -= 1
            writer.close()


@dataclass
class Line:
    """A client's connection through the route."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter

    async def echoes(self, data: bytes) -> bool:
        self.writer.write(data)
        return await self.hears(data)

    async def hears(self, data: bytes) -> bool:
        """Whether exactly this arrives, within a time in which everything arrives that is not stalled."""
        try:
            async with asyncio.timeout(STALLED_SECONDS):
                return await self.reader.readexactly(len(data)) == data
        except TimeoutError:
            return False


@dataclass
class Routed:
    echo: Echo
    route: Route

    @asynccontextmanager
    async def line(self) -> AsyncIterator[Line]:
        port = int(self.route.url.rpartition(":")[2])
        reader, writer = await asyncio.open_connection(LOOPBACK, port)
        try:
            yield Line(reader, writer)
        finally:
            writer.close()


@pytest_asyncio.fixture
async def routed() -> AsyncIterator[Routed]:
    echo = Echo()
    server = await asyncio.start_server(echo.serve, LOOPBACK, 0)
    async with server:
        async with route_to(
            f"tcp://login@{LOOPBACK}:{server.sockets[0].getsockname()[1]}"
        ) as route:
            yield Routed(echo, route)
        await stop_accepting(server.sockets)
        for writer in echo.writers:
            writer.transport.abort()


async def test_a_route_passes_bytes_and_the_end_of_a_connection(routed: Routed) -> None:
    async with routed.line() as line:
        passed = await line.echoes(b"one")
        line.writer.write_eof()
        rest = await line.reader.read()

    assert routed.route.url.startswith("tcp://login@")
    assert passed
    assert rest == b""
    assert routed.echo.open_connections == 0


async def test_a_connection_that_comes_as_all_are_cut_is_closed_or_passes(routed: Routed) -> None:
    port = int(routed.route.url.rpartition(":")[2])
    for turns in range(TURNS):
        come = socket.create_connection((LOOPBACK, port))  # its peer is this very event loop
        for _ in range(turns):
            await asyncio.sleep(0)

        routed.route.cut()

        reader, writer = await asyncio.open_connection(sock=come)
        writer.write(b"one")
        async with asyncio.timeout(20 * pace()):
            with suppress(ConnectionError):
                assert await reader.read(3) in (b"one", b"")
        writer.close()


async def test_a_stalled_route_passes_nothing_until_it_is_resumed(routed: Routed) -> None:
    async with routed.line() as old, routed.line() as closed:
        assert await old.echoes(b"one")
        assert await closed.echoes(b"two")

        routed.route.stall()
        closed.writer.close()
        async with routed.line() as new:
            passed = [await old.echoes(b"three"), await new.echoes(b"four")]
            known = routed.echo.received, routed.echo.connections, routed.echo.open_connections
            routed.route.resume()
            late = [await old.hears(b"three"), await new.hears(b"four")]

    assert passed == [False, False]
    assert known == (b"onetwo", 2, 2), "the server knows neither bytes, connections nor ends"
    assert late == [True, True]


@pytest.mark.parametrize("direction", Direction)
async def test_a_route_may_be_stalled_in_one_direction(
    routed: Routed, direction: Direction
) -> None:
    async with routed.line() as line:
        assert await line.echoes(b"one")

        routed.route.stall(frozenset({direction}))
        passed = await line.echoes(b"two")

    assert not passed
    assert routed.echo.received == (b"one" if direction is Direction.TO_SERVER else b"onetwo")


async def test_connections_before_a_renewal_stay_stalled_and_new_ones_pass(routed: Routed) -> None:
    async with routed.line() as old:
        assert await old.echoes(b"one")
        routed.route.stall()
        async with routed.line() as stalled:
            routed.route.renew()
            async with routed.line() as new:
                passed = [
                    await old.echoes(b"two"),
                    await stalled.echoes(b"three"),
                    await new.echoes(b"four"),
                ]

    assert passed == [False, False, True]
    assert routed.echo.received == b"onefour"


async def test_connections_that_are_cut_end_on_both_sides(routed: Routed) -> None:
    async with routed.line() as old:
        assert await old.echoes(b"one")
        routed.route.stall()

        routed.route.cut()
        rest = await old.reader.read()
        async with routed.line() as new:
            passed = await new.echoes(b"two")

            async def only_new() -> bool:
                return routed.echo.open_connections == 1

            await eventually("the server has the new connection only", only_new)

    assert rest == b""
    assert passed
