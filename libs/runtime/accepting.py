"""Where connections of callers are accepted, with TLS of the listener's own or without."""

from __future__ import annotations

import asyncio
import errno
import socket
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

from libs.runtime.connections import Connections
from libs.runtime.handshakes import Handshakes
from libs.runtime.process import Process

BACKLOG = 1024
ARRIVED_SECONDS = 0.02
"""Between two looks at what is on its way."""


async def addresses_of(host: str, port: int) -> list[tuple[int, Any]]:
    """The addresses of a host, each with its family. Raises OSError."""
    found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys((item[0], item[4]) for item in found))


def bound(family: int, address: Any, *, share: bool) -> socket.socket:
    """A socket at an address, which several processes can share. Raises OSError."""
    opened = socket.socket(family, socket.SOCK_STREAM)
    try:
        opened.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if share:
            opened.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        if family == socket.AF_INET6:
            opened.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        opened.bind(address)
    except OSError:
        opened.close()
        raise
    return opened


async def bound_at(host: str, port: int) -> list[socket.socket]:
    """A socket at every address of the host that is of a family which the kernel has. Raises OSError."""
    opened: list[socket.socket] = []
    unsupported: OSError | None = None
    try:
        for family, address in await addresses_of(host, port):
            try:
                opened.append(bound(family, address, share=False))
            except OSError as error:
                if error.errno != errno.EAFNOSUPPORT:
                    raise
                unsupported = error
        if not opened and unsupported is not None:
            raise unsupported
    except OSError:
        for each in opened:
            each.close()
        raise
    return opened


@asynccontextmanager
async def accepting(
    process: Process,
    sockets: Sequence[socket.socket],
    protocols: Callable[[], asyncio.Protocol],
    handshakes: Handshakes | None,
) -> AsyncIterator[None]:
    """While the body runs, each connection gets a protocol; the sockets, which are bound, are closed afterwards.

    Args:
        handshakes: None where connections are not encrypted. Those under way at the end go on, see `until_arrived`.
    """
    loop = asyncio.get_running_loop()
    async with AsyncExitStack() as opened:
        for each in sockets:
            opened.callback(each.close)
        for each in sockets:
            each.listen(BACKLOG)
            each.setblocking(False)
            if handshakes is None:
                server = await loop.create_server(protocols, sock=each, backlog=BACKLOG)
                opened.callback(server.close)
            else:
                shaking = handshakes.accept_for_ever(each, protocols)
                await opened.enter_async_context(process.background("tls-handshakes", shaking))
        yield


async def until_arrived(
    connections: Connections, handshakes: Handshakes | None, seconds: float
) -> None:
    """Wait, for at most `seconds`, until no handshake is under way and no request on its way. Called after `accepting`,
    before a server closes its connections: aiohttp reads nothing further of them.

    Args:
        handshakes: None where connections are not encrypted. Those that are still under way are given up.
    """
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        is_shaking_hands = handshakes is not None and handshakes.are_under_way
        if not (is_shaking_hands or connections.are_awaited(seconds)):
            break
        await asyncio.sleep(ARRIVED_SECONDS)
    if handshakes is not None:
        await handshakes.close()
