"""One address for several gateways, as a load balancer of TCP connections gives it."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from dataclasses import dataclass

from deploy.local.ports import LOOPBACK
from tests.support.stack import ServiceProcess
from tests.support.waiting import eventually

POLL_SECONDS = 0.2
"""Between two looks at `/ready` of a gateway."""
FAILURES = 3
"""So many looks in a row find a gateway that is no longer ready. One that fails may mean that the machine is busy."""
CHUNK_BYTES = 65536


@dataclass
class _Behind:
    process: ServiceProcess
    port: int
    is_ready: bool = False
    failures: int = 0


class Address:
    """Connections go in turn to the gateways that are ready. What a gateway loses, its caller loses."""

    def __init__(self) -> None:
        self.port = 0
        self.refused = 0
        """Connections that were closed because no gateway took them."""
        self._gateways: list[_Behind] = []
        self._taken_out: set[ServiceProcess] = set()
        self._turn = 0
        self._looking: list[asyncio.Task[None]] = []
        self._links: set[asyncio.Task[None]] = set()
        self._opened: list[asyncio.StreamWriter] = []

    def add(self, process: ServiceProcess, port: int) -> None:
        """From now on the gateway, which listens on this port, is asked whether it is ready."""
        gateway = _Behind(process, port)
        self._gateways.append(gateway)
        self._looking.append(asyncio.create_task(_look_for_ever(gateway), name="look"))

    def take_out(self, process: ServiceProcess) -> None:
        """The gateway gets no more connections. It keeps those that it has."""
        self._taken_out.add(process)

    def put_back(self, process: ServiceProcess) -> None:
        """Whether it gets connections depends on its readiness again."""
        self._taken_out.discard(process)

    async def is_taken(self) -> None:
        """Return when a gateway is ready for connections."""

        async def is_ready() -> bool:
            return any(map(self._gets, self._gateways))

        await eventually("a gateway is ready", is_ready)

    @contextlib.asynccontextmanager
    async def open(self) -> AsyncIterator[None]:
        """Listen until the block ends."""
        server = await asyncio.start_server(self._accept, LOOPBACK, 0)
        self.port = server.sockets[0].getsockname()[1]
        try:
            yield
        finally:
            server.close()
            tasks = {*self._looking, *self._links}
            for task in tasks:
                task.cancel()
            if tasks:
                await asyncio.wait(tasks)
            for end in self._opened:
                end.transport.abort()
            await server.wait_closed()

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        link = asyncio.create_task(self._link(reader, writer), name="link")
        self._links.add(link)
        link.add_done_callback(self._links.discard)

    def _gets(self, gateway: _Behind) -> bool:
        return gateway.is_ready and gateway.process not in self._taken_out

    async def _link(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._opened.append(writer)
        try:
            ready = [one for one in self._gateways if self._gets(one)]
            self._turn += 1
            port = ready[self._turn % len(ready)].port if ready else 0
            from_gateway, to_gateway = await asyncio.open_connection(LOOPBACK, port)
        except OSError:
            self.refused += 1
            writer.close()
            return
        self._opened.append(to_gateway)
        directions = {
            asyncio.create_task(_forward(reader, to_gateway)),
            asyncio.create_task(_forward(from_gateway, writer)),
        }
        try:
            await asyncio.wait(directions, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for direction in directions:
                direction.cancel()
            to_gateway.close()
            writer.close()


async def _look_for_ever(gateway: _Behind) -> None:
    while True:
        is_ready = await _is_ready(gateway)
        gateway.failures = 0 if is_ready else gateway.failures + 1
        gateway.is_ready = is_ready or (gateway.is_ready and gateway.failures < FAILURES)
        await asyncio.sleep(POLL_SECONDS)


async def _is_ready(gateway: _Behind) -> bool:
    try:
        return gateway.process.is_running and await gateway.process.is_ready()()
    except (OSError, TimeoutError):
        return False


async def _forward(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Until one of them is closed."""
    with contextlib.suppress(ConnectionError):
        while data := await reader.read(CHUNK_BYTES):
            writer.write(data)
            await writer.drain()
