"""A port mapper of one Erlang node (`epmd`): it tells where other nodes are, which is at the test's routes.

Each node has one of its own, so that the connections between two nodes can be cut while all run on one machine. Source:
Erlang's "Distribution protocol", EPMD protocol.
"""

from __future__ import annotations

import asyncio
import contextlib
import struct
from collections.abc import AsyncIterator, Mapping

from deploy.local.ports import LOOPBACK

ALIVE2_REQUEST, ALIVE2_X_ANSWER = 120, 118
PORT_REQUEST, PORT_ANSWER = 122, 119
NAMES_REQUEST = 110
FOUND, UNKNOWN = 0, 1
NODE_TYPE, PROTOCOL, HIGHEST, LOWEST = 77, 0, 6, 5
CREATION = 1


class PortMapper:
    """The port mapper of one node.

    Args:
        ports: of the nodes' distribution, by the part of their names before the @.
        registered: who has registered at any of the mappers, tools like `rabbitmqctl` among them, to which every node
            answers directly.
    """

    def __init__(self, ports: Mapping[str, int], registered: dict[str, int]) -> None:
        self._ports = ports
        self._everywhere = registered
        self._registered: list[tuple[str, int]] = []
        """Here: the node that is this mapper's, and tools that ask it."""
        self._open: set[asyncio.Task[None]] = set()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._open.add(task)
        try:
            size = struct.unpack(">H", await reader.readexactly(2))[0]
            request = await reader.readexactly(size)
            writer.write(self._answer(request, writer))
            await writer.drain()
            if request[0] == ALIVE2_REQUEST:
                await self._registered_until_closed(request, reader)
        except (OSError, asyncio.IncompleteReadError):
            pass  # the node has ended
        finally:
            self._open.discard(task)
            writer.close()

    async def _registered_until_closed(self, request: bytes, reader: asyncio.StreamReader) -> None:
        """A node is registered for as long as its connection lasts."""
        size = struct.unpack(">H", request[9:11])[0]
        entry = request[11 : 11 + size].decode(), struct.unpack(">H", request[1:3])[0]
        self._registered.append(entry)
        self._everywhere[entry[0]] = entry[1]
        try:
            await reader.read()
        finally:
            self._registered.remove(entry)
            self._everywhere.pop(entry[0], None)

    def _answer(self, request: bytes, writer: asyncio.StreamWriter) -> bytes:
        match request[0]:
            case code if code == ALIVE2_REQUEST:
                return struct.pack(">BBI", ALIVE2_X_ANSWER, FOUND, CREATION)
            case code if code == PORT_REQUEST:
                name = request[1:].decode()
                port = self._ports.get(name) or self._everywhere.get(name)
                if port is None:
                    return struct.pack(">BB", PORT_ANSWER, UNKNOWN)
                head = struct.pack(">BBH", PORT_ANSWER, FOUND, port)
                kind = struct.pack(">BBHH", NODE_TYPE, PROTOCOL, HIGHEST, LOWEST)
                return head + kind + struct.pack(">H", len(name)) + name.encode() + b"\0\0"
            case code if code == NAMES_REQUEST:
                port = writer.get_extra_info("sockname")[1]
                lines = [f"name {name} at port {at}\n" for name, at in self._registered]
                return struct.pack(">I", port) + "".join(lines).encode()
            case _:
                return b""

    @contextlib.asynccontextmanager
    async def open(self, port: int) -> AsyncIterator[None]:
        server = await asyncio.start_server(self._serve, LOOPBACK, port)
        try:
            yield
        finally:
            server.close()
            for task in list(self._open):
                task.cancel()
            await asyncio.gather(*self._open, return_exceptions=True)
            await server.wait_closed()
