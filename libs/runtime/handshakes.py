"""TLS of a listener's own, by setting: connections are accepted, and shake hands, before `Connections` knows of them.

A server of asyncio with `ssl=` bounds neither how many connections are shaking hands, nor how many are one address's.
Here the oldest handshake is given up for a new one where there are too many.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import Callable
from typing import Any

import structlog
from prometheus_client import Counter

from libs.runtime.tls_writing import PiecewiseWriting

ACCEPT_AGAIN_SECONDS = 0.1
CLOSE_SECONDS = 2.0
"""How long a connection that is closed waits for the caller's close_notify."""

FAILED = Counter(
    "bankside_http_tls_failures_total", "Connections of callers whose TLS handshake failed."
)


class Handshakes:
    """The TLS handshakes under way of one listener, bounded in number and time.

    Args:
        count_as: as of `Connections`.
        per_address, in_all: the most handshakes of one address, and of all.
        seconds: a longer handshake is given up.
    """

    def __init__(
        self,
        context: ssl.SSLContext,
        count_as: Callable[[str], str | None],
        *,
        per_address: int,
        in_all: int,
        seconds: float,
    ) -> None:
        self._context = context
        self._count_as = count_as
        self._per_address = per_address
        self._in_all = in_all
        self._seconds = seconds
        self._under_way: dict[asyncio.Task[None], str | None] = {}
        """The oldest first; with the address."""
        self._of_address: dict[str, dict[asyncio.Task[None], None]] = {}

    @property
    def are_under_way(self) -> bool:
        return bool(self._under_way)

    def renew(self, context: ssl.SSLContext) -> None:
        """Use this context for handshakes that begin from now on."""
        self._context = context

    async def accept_for_ever(
        self, listening: socket.socket, protocols: Callable[[], asyncio.Protocol]
    ) -> None:
        """Give each connection whose handshake succeeds a protocol. Handshakes go on when it is cancelled."""
        loop = asyncio.get_running_loop()
        while True:
            try:
                accepted, peer = await loop.sock_accept(listening)
            except OSError as error:  # too many files are open, or the caller has gone again
                structlog.get_logger("connections").warning("not_accepted", error=error.strerror)
                await asyncio.sleep(ACCEPT_AGAIN_SECONDS)
                continue
            self._begin(accepted, self._count_as(peer[0]), protocols)

    async def close(self) -> None:
        """Give up those that are under way, once no connection is accepted any more."""
        for task in list(self._under_way):
            task.cancel()
        await asyncio.gather(*self._under_way, return_exceptions=True)

    def _begin(
        self, accepted: socket.socket, address: str | None, protocols: Callable[[], Any]
    ) -> None:
        if address is not None:
            of_address = self._of_address.setdefault(address, {})
            if len(of_address) >= self._per_address:
                self._give_up(next(iter(of_address)))
        if len(self._under_way) >= self._in_all:
            self._give_up(next(iter(self._under_way)))
        task = asyncio.create_task(self._shake(accepted, protocols), name="tls-handshake")
        self._under_way[task] = address
        if address is not None:
            self._of_address.setdefault(address, {})[task] = None
        task.add_done_callback(self._forget)

    async def _shake(self, accepted: socket.socket, protocols: Callable[[], Any]) -> None:
        try:
            await asyncio.get_running_loop().connect_accepted_socket(
                lambda: PiecewiseWriting(protocols()),
                accepted,
                ssl=self._context,
                ssl_handshake_timeout=self._seconds,
                ssl_shutdown_timeout=CLOSE_SECONDS,
            )
        except OSError:  # of TLS, of the connection, or of the deadline
            FAILED.inc()

    def _give_up(self, task: asyncio.Task[None]) -> None:
        FAILED.inc()
        task.cancel()
        self._forget(task)

    def _forget(self, task: asyncio.Task[None]) -> None:
        address = self._under_way.pop(task, None)
        of_address = self._of_address.get(address) if address is not None else None
        if address is not None and of_address is not None:
            of_address.pop(task, None)
            if not of_address:
                del self._of_address[address]
