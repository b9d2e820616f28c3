"""The sockets at which connections of callers are accepted.

A process opens its own. Where several share the port, their parent binds the sockets of each (SO_REUSEPORT) and passes
them on, and each process listens on its own. The parent keeps them open, so connections that arrive while a process is
replaced wait for the next one instead of being reset.
"""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any, NamedTuple

from services.gateway.settings import Settings


class ListenAt(NamedTuple):
    """Where one listener listens.

    Args:
        passed_on: the variable that tells a child its sockets there: their descriptors, separated by commas.
    """

    host: str
    port: int
    passed_on: str


def public(settings: Settings) -> ListenAt:
    """Where partners and customers connect."""
    return ListenAt(settings.host, settings.port, "BANKSIDE_GATEWAY_CHILD_SOCKETS")


def for_operators(settings: Settings) -> ListenAt:
    """Where operators connect."""
    variable = "BANKSIDE_GATEWAY_CHILD_OPERATOR_SOCKETS"
    return ListenAt(settings.operator_host, settings.operator_port, variable)


async def addresses_of(host: str, port: int) -> list[tuple[int, Any]]:
    """Family and address of each. Raises OSError."""
    found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys((item[0], item[4]) for item in found))


@asynccontextmanager
async def listening_sockets(at: ListenAt, backlog: int) -> AsyncIterator[list[socket.socket]]:
    """Sockets that listen, closed afterwards: those that the parent passed on, else one at every address of the host.

    Raises OSError.
    """
    passed_on = os.environ.get(at.passed_on)
    opened: list[socket.socket] = []
    try:
        if passed_on:
            opened.extend(socket.socket(fileno=int(each)) for each in passed_on.split(","))
        else:
            for family, address in await addresses_of(at.host, at.port):
                opened.append(_bound(family, address, share=False))
        for listening in opened:
            listening.listen(backlog)
            listening.setblocking(False)
        yield opened
    finally:
        for listening in opened:
            listening.close()


class ChildSockets:
    """The sockets of one child, which its parent keeps open. Raises OSError when they cannot be bound."""

    def __init__(self, addresses: Sequence[tuple[int, Any]]) -> None:
        self._addresses = addresses
        self._bound = [_bound(*address, share=True) for address in addresses]

    @property
    def descriptors(self) -> tuple[int, ...]:
        return tuple(bound.fileno() for bound in self._bound)

    def renew(self) -> None:
        """After the child died: until it runs again, none but the other children are given connections. A socket that
        does not listen is given none, and the next life of the child listens on it.
        """
        for bound, address in zip(self._bound, self._addresses, strict=True):
            with _bound(*address, share=True) as fresh:
                os.dup2(fresh.fileno(), bound.fileno(), inheritable=False)

    def close(self) -> None:
        for bound in self._bound:
            bound.close()


def _bound(family: int, address: Any, *, share: bool) -> socket.socket:
    bound = socket.socket(family, socket.SOCK_STREAM)
    try:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if share:
            bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        if family == socket.AF_INET6:
            bound.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        bound.bind(address)
    except OSError:
        bound.close()
        raise
    return bound
