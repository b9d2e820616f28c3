"""The sockets at which connections of callers are accepted.

A process opens its own. Where several share the port, their parent binds the sockets of each (SO_REUSEPORT) and passes
them on, and each process listens on its own. The parent keeps them open, so connections that arrive while a process is
replaced wait for the next one instead of being reset. Where the next one has died or does not become ready, they are
renewed.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Sequence
from typing import Any, NamedTuple

from libs.runtime.accepting import bound, bound_at
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


async def sockets_at(at: ListenAt) -> list[socket.socket]:
    """Those that the parent passed on, else one at every address of the host. Raises OSError."""
    passed_on = os.environ.get(at.passed_on)
    if passed_on:
        return [socket.socket(fileno=int(each)) for each in passed_on.split(",")]
    return await bound_at(at.host, at.port)


class ChildSockets:
    """The sockets of one child, which its parent keeps open. Raises OSError when they cannot be bound."""

    def __init__(self, addresses: Sequence[tuple[int, Any]]) -> None:
        self._addresses = addresses
        self._bound = [bound(*address, share=True) for address in addresses]

    @property
    def descriptors(self) -> tuple[int, ...]:
        return tuple(own.fileno() for own in self._bound)

    def renew(self) -> None:
        """Called while the child does not run: until it listens again, none but the other children are given
        connections. A socket that does not listen is given none, and the next life of the child listens on it.
        """
        for own, address in zip(self._bound, self._addresses, strict=True):
            with bound(*address, share=True) as fresh:
                os.dup2(fresh.fileno(), own.fileno(), inheritable=False)

    def close(self) -> None:
        for own in self._bound:
            own.close()
