"""The HTTP client that a client sends with: the caller's, or its own of this process or event loop."""

from __future__ import annotations

import os
from collections.abc import AsyncGenerator
from dataclasses import dataclass

import httpx
from anyio.lowlevel import RunVar

CLOSED = "The client is closed; nothing was sent."
_THIS_LOOP: RunVar[object] = RunVar("bankside_client.loop")
"""A value of its own for each event loop, of asyncio as of trio."""


class ProcessConnections:
    """Two processes that send on one connection, as after a fork, read each other's answers: so each process has an
    HTTP client of its own.

    Args:
        given: the caller's, which is used as it is and not closed.
    """

    def __init__(self, given: httpx.Client | None) -> None:
        self._is_own = given is None
        self._of: tuple[int, httpx.Client] = os.getpid(), given or httpx.Client()
        self._is_closed = False

    def of_this_process(self) -> httpx.Client:
        """Raises:
        RuntimeError: it is closed.
        """
        pid, http = self._of
        if self._is_closed or http.is_closed:
            raise RuntimeError(CLOSED)
        if self._is_own and pid != os.getpid():
            # The parent's is dropped and not closed: its locks may be held by threads that the child does not have. As
            # the parent has its sockets too, dropping them ends no connection.
            http = httpx.Client()
            self._of = os.getpid(), http
        return http

    def close(self) -> None:
        """Close the own connections of this process."""
        self._is_closed = self._is_own
        pid, http = self._of
        if self._is_own and pid == os.getpid():
            http.close()


@dataclass(frozen=True, slots=True)
class LoopHttp:
    """A call holds it until its answer: `http` is closed with `open_until_closed`, also when that is collected."""

    http: httpx.AsyncClient
    loop: object = None
    pid: int = 0
    open_until_closed: AsyncGenerator[None, None] | None = None


class LoopConnections:
    """On a connection that another event loop opened, a request is sent and its answer cannot be read: so each loop has
    an HTTP client of its own, the latest one of which is kept. So has a child of `os.fork` that goes on with a loop.

    Args:
        given: the caller's, which is used on every loop and not closed.
    """

    def __init__(self, given: httpx.AsyncClient | None) -> None:
        self._given = given
        self._tls = httpx.create_ssl_context() if given is None else True
        self._own: LoopHttp | None = None
        self._is_closed = False

    async def of_this_loop(self) -> LoopHttp:
        """Raises:
        RuntimeError: it is closed.
        """
        if self._is_closed or (self._given is not None and self._given.is_closed):
            raise RuntimeError(CLOSED)
        if self._given is not None:
            return LoopHttp(self._given)
        loop, own = _this_loop(), self._own
        if own is None or own.loop is not loop or own.pid != os.getpid() or own.http.is_closed:
            http = httpx.AsyncClient(verify=self._tls)
            ending = _open_until_closed(http)
            await anext(ending)
            own = self._own = LoopHttp(http, loop, os.getpid(), ending)
        return own

    async def aclose(self) -> None:
        """Close the own connections of this loop; those of another one cannot be closed here."""
        if self._given is not None:
            return
        self._is_closed = True
        own, self._own = self._own, None
        if own is not None and own.loop is _this_loop() and own.open_until_closed is not None:
            await own.open_until_closed.aclose()


async def _open_until_closed(http: httpx.AsyncClient) -> AsyncGenerator[None, None]:
    """asyncio and trio close the generators of a loop as it ends: after that its connections cannot be closed."""
    try:
        yield
    finally:
        await http.aclose()


def _this_loop() -> object:
    loop = _THIS_LOOP.get(None)
    if loop is None:
        loop = object()
        _THIS_LOOP.set(loop)
    return loop
