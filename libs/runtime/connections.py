"""Connections of callers, bounded in number, in the bytes of headers, in what is not read of answers, and in the time
that headers, and the reading of answers, may take.

aiohttp closes a connection that stays idle. But it lets one address hold any number, headers arrive as slowly as they
like and be half a megabyte, and answers wait for a caller who does not read. Where an address or the process has too
many, one without a verified request is closed for the new one: the oldest on which no request was admitted yet, else
the one that has been idle the longest. So neither idle connections nor half requests keep other callers out, not even
others at the same address.
"""

from __future__ import annotations

import asyncio
import gc
import time
from asyncio.trsock import TransportSocket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final, cast

from aiohttp import StreamReader, web
from aiohttp.typedefs import Handler, Middleware
from prometheus_client import Counter, Gauge

from libs.runtime.acknowledged_bytes import acknowledged_bytes
from libs.runtime.request_handlers import head_too_large
from libs.runtime.request_heads import RequestHeads
from libs.runtime.unread_answers import UnreadAnswers

SWEEP_SECONDS = 1.0
MOST_AHEAD_BYTES = 1024 * 1024
"""The most that may arrive while a request has no answer: its body, and requests sent before its answer. What follows
is the rest of a body, which aiohttp throws away for a while, so that the caller reads the answer.
"""
MOST_EMPTY_BYTES = 64
"""Of empty lines before a request, where one is usual (RFC 9112, 2.2). They need no credentials."""
MOST_HEAD_BYTES = 16 * 1024
"""Of a request's line and headers. Until they have ended they are kept twice, as bytes and as text, and need no
credentials.
"""
COLLECTED_BYTES = 16 * 1024 * 1024
"""The garbage collector is called whenever this much has arrived on all connections."""

OPEN = Gauge("bankside_http_connections", "Connections of callers.")
CLOSED = Counter(
    "bankside_http_connections_closed_total",
    "Connections of callers that were closed for a bound.",
    ["bound"],
)


class _Waiting:
    """Connections without a verified request under way, each kind in the order in which they came to be so."""

    def __init__(self) -> None:
        self._strangers: dict[_Connection, None] = {}
        self._authenticated: dict[_Connection, None] = {}

    def add(self, connection: _Connection) -> None:
        (self._authenticated if connection.is_authenticated else self._strangers)[connection] = None

    def remove(self, connection: _Connection) -> None:
        self._strangers.pop(connection, None)
        self._authenticated.pop(connection, None)

    def missed_least(self) -> _Connection | None:
        return next(iter(self._strangers), None) or next(iter(self._authenticated), None)


class _Connection(asyncio.Protocol):
    """aiohttp's protocol for one connection, and what is known of its requests."""

    def __init__(self, owner: Connections, handler: asyncio.Protocol) -> None:
        self._owner = owner
        self._handler = handler
        self.transport: asyncio.Transport | None = None
        self._socket: TransportSocket | None = None
        self.address: str | None = None
        self.made_at = time.monotonic()
        self.has_had_request = False
        self.is_authenticated = False
        """A signed request was admitted on it."""
        self._heads = RequestHeads()
        self._headers_began: float | None = None
        """Monotonic; None while no headers are arriving."""
        self._empty_bytes = 0
        """Of empty lines since the last request."""
        self._content: StreamReader | None = None
        """Of the request that is under way, also while the body of an answered one arrives."""
        self._body: StreamReader | None = None
        """Of the request that has no answer yet."""
        self._ahead_bytes = 0
        self._acknowledged = 0
        """Bytes as of `_unread_since`."""
        self._unread_since: float | None = None
        """When the caller last took something while an answer waits, monotonic; None where none waits."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)
        self._socket = transport.get_extra_info("socket")
        # All that does not leave at once pauses the protocol, and so is bounded in bytes and in time.
        self.transport.set_write_buffer_limits(high=0)
        self._handler.connection_made(transport)
        self._owner.add(self)

    def data_received(self, data: bytes) -> None:
        begin = data
        if self._body is not None:
            self._ahead_bytes += len(data)
            if self._ahead_bytes > MOST_AHEAD_BYTES:
                self.abort("sent_ahead")
                return
        elif self._content is None and self._headers_began is None:
            begin = data.lstrip(b"\r\n")
            self._empty_bytes += len(data) - len(begin)
            if self._empty_bytes > MOST_EMPTY_BYTES:
                self.abort("empty_lines")
                return
            if begin:
                self._headers_began = time.monotonic()
        self._owner.received(len(data))
        if self._heads.received(begin) > MOST_HEAD_BYTES:
            self._refuse_head()
            return
        self._handler.data_received(data)
        self._bound_head_behind()

    def begin_request(self, request: web.Request) -> None:
        self.has_had_request = True
        self._headers_began = None
        self._empty_bytes = 0
        self._body = self._content = request.content
        self._heads.begin_request(request)
        self._bound_head_behind()

    def is_last(self) -> bool:
        """Whether the connection has to end with the answer to the request that is under way."""
        return self._is_body_there() and self._heads.is_last()

    def answered(self) -> None:
        self._body = None

    def is_awaited(self, first_request_since: float) -> bool:
        """Whether the body of its request is still arriving, or it was made since then (monotonic) and has had none."""
        if self._body is not None:
            return not self._body.is_eof()
        return not self.has_had_request and self.made_at >= first_request_since

    def end_request(self) -> None:
        """The request was handled, and its body was read or thrown away."""
        self._bound_head_behind()
        self._ahead_bytes = 0
        self._content = None
        if self._heads.end_request():
            self._headers_began = time.monotonic()

    def authenticated(self) -> None:
        """The request that is under way was admitted: the connection stays until its answer."""
        self.is_authenticated = True
        self._owner.leave(self)

    def eof_received(self) -> bool | None:
        return self._handler.eof_received()

    def pause_writing(self) -> None:
        self._unread_since, self._acknowledged = time.monotonic(), self._acknowledged_bytes()
        self._handler.pause_writing()
        self._owner.unread.add(self)

    def resume_writing(self) -> None:
        self._unread_since = None
        if (
            self._headers_began is not None
        ):  # aiohttp begins no request before the answer to the one before has left
            self._headers_began = time.monotonic()
        self._owner.unread.remove(self)
        self._handler.resume_writing()

    def connection_lost(self, error: Exception | None) -> None:
        self._owner.remove(self)
        self._owner.unread.remove(self)
        self._handler.connection_lost(error)

    def abort(self, bound: str) -> None:
        CLOSED.labels(bound).inc()
        self._owner.unread.remove(self)  # at once: its loss is reported later
        if self.transport is not None:
            self.transport.abort()

    def _refuse_head(self) -> None:
        """No request is under way, so that no other answer is."""
        CLOSED.labels("large_head").inc()
        if self.transport is not None:
            self.transport.write(head_too_large())
            self.transport.close()

    def _bound_head_behind(self) -> None:
        if self._is_body_there() and self._heads.size_behind() > MOST_HEAD_BYTES:
            self.abort("large_head")

    def _is_body_there(self) -> bool:
        return self._content is not None and self._content.is_eof()

    def check(self, stalled_seconds: float) -> None:
        """Abort when headers, or the reading of an answer, take too long."""
        now = time.monotonic()
        if self._unread_since is not None:
            acknowledged = self._acknowledged_bytes()
            if acknowledged > self._acknowledged:
                self._unread_since, self._acknowledged = now, acknowledged
            elif self._unread_since < now - stalled_seconds:
                self.abort("unread_answer")
        elif self._headers_began is not None and self._headers_began < now - stalled_seconds:
            self.abort("slow_headers")

    def unread_bytes(self) -> int:
        return self.transport.get_write_buffer_size() if self.transport is not None else 0

    def _acknowledged_bytes(self) -> int:
        return acknowledged_bytes(self._socket) if self._socket is not None else 0


CONNECTION: Final = web.RequestKey("connection", _Connection)


class Connections:
    """The connections of one process.

    Args:
        count_as: the name under which connections from a peer's address are counted, None where they are not: those
            of a trusted proxy are many callers'.
        per_address, in_all: the most connections of one address, and of all.
        stalled_seconds: from the first byte of a request to the end of its headers, and while a caller takes nothing of
            an answer.
    """

    def __init__(
        self,
        count_as: Callable[[str], str | None],
        *,
        per_address: int,
        in_all: int,
        stalled_seconds: float,
    ) -> None:
        self._count_as = count_as
        self._per_address = per_address
        self._in_all = in_all
        self._stalled_seconds = stalled_seconds
        self._open: dict[asyncio.BaseTransport, _Connection] = {}
        self._count: dict[str, int] = {}
        self._waiting = _Waiting()
        self._waiting_from: dict[str, _Waiting] = {}
        self._uncollected_bytes = 0
        self.unread = UnreadAnswers()
        self.is_draining = False
        """Every answer ends its connection."""

    def protocols(self, handler: Callable[[], asyncio.Protocol]) -> Callable[[], asyncio.Protocol]:
        """What makes the protocol of each new connection, around aiohttp's."""
        return lambda: _Connection(self, handler())

    @property
    def middleware(self) -> Middleware:
        """The outermost middleware of an application: it notes when each request begins and ends."""

        @web.middleware
        async def on_connection(request: web.Request, handler: Handler) -> web.StreamResponse:
            with self._serving(request) as connection:
                response = await handler(request)
                if connection is not None and connection.is_last():
                    response.force_close()
                return response

        return on_connection

    async def close_when_draining(self, _: web.Request, response: web.StreamResponse) -> None:
        """A signal for the application's `on_response_prepare`: it reaches answers that are streamed, too."""
        if self.is_draining:
            response.headers["Connection"] = "close"
            response.force_close()

    @contextmanager
    def _serving(self, request: web.Request) -> Iterator[_Connection | None]:
        """While a request is under way, from the end of its headers to its answer."""
        connection = self._open.get(request.transport) if request.transport is not None else None
        if connection is None:  # lost in the meantime
            yield None
            return
        request[CONNECTION] = connection
        connection.begin_request(request)
        try:
            yield connection
        finally:
            connection.answered()
            request.content.on_eof(connection.end_request)  # at once, when it is there already
            self.leave(connection)
            if connection.transport in self._open:
                self._wait(connection)

    async def drain(self, seconds: float) -> None:
        """For `seconds`, let each connection end after its next answer, those included that are made meanwhile.

        It does not end earlier when none is open: a load balancer may not know yet that the process ends. A connection
        that is idle all the time may have a request on its way when it is closed, which its caller then has to send
        again.
        """
        self.is_draining = True
        await asyncio.sleep(seconds)

    def are_awaited(self, seconds: float) -> bool:
        """Whether a request is on its way: the body of one under way, or the first request of a connection that is not
        older than `seconds`.
        """
        since = time.monotonic() - seconds
        return any(each.is_awaited(since) for each in self._open.values())

    async def close_slow_ones_for_ever(self) -> None:
        """Close those whose headers take too long, or whose callers do not read."""
        while True:
            await asyncio.sleep(SWEEP_SECONDS)
            for connection in list(self._open.values()):
                connection.check(self._stalled_seconds)
            self.unread.check()

    def add(self, connection: _Connection) -> None:
        """Called by a connection that was made; another one, or itself, is closed where there are too many."""
        transport = connection.transport
        assert transport is not None
        peer = transport.get_extra_info("peername")
        address = connection.address = self._count_as(peer[0]) if peer else None
        self._open[transport] = connection
        OPEN.inc()
        if address is not None:
            self._count[address] = self._count.get(address, 0) + 1
            if self._count[address] > self._per_address:
                self._close_one(self._waiting_from.get(address), connection, "per_address")
        if len(self._open) > self._in_all:
            self._close_one(self._waiting, connection, "in_all")
        if transport in self._open:
            self._wait(connection)

    def received(self, count: int) -> None:
        """Called by a connection when `count` bytes have arrived.

        aiohttp keeps what it has read of a request that its parser refuses, half a megabyte at most, in a cycle of
        objects. The garbage collector goes by the number of objects: by itself it would come only after hundreds of
        megabytes.
        """
        self._uncollected_bytes += count
        if self._uncollected_bytes >= COLLECTED_BYTES:
            self._uncollected_bytes = 0
            gc.collect(1)

    def remove(self, connection: _Connection) -> None:
        """Called by a connection that was lost."""
        if connection.transport is None or self._open.pop(connection.transport, None) is None:
            return
        OPEN.dec()
        self.leave(connection)
        address = connection.address
        if address is not None:
            self._count[address] -= 1
            if not self._count[address]:
                del self._count[address]
                self._waiting_from.pop(address, None)

    def _close_one(self, waiting: _Waiting | None, new: _Connection, bound: str) -> None:
        """Close the one that is missed the least, or the new one when all others have verified requests under way."""
        missed_least = (waiting.missed_least() if waiting is not None else None) or new
        self.remove(missed_least)  # at once: many may come before its loss is reported
        missed_least.abort(bound)

    def _wait(self, connection: _Connection) -> None:
        self._waiting.add(connection)
        if connection.address is not None:
            self._waiting_from.setdefault(connection.address, _Waiting()).add(connection)

    def leave(self, connection: _Connection) -> None:
        """Called when a connection has a verified request, or is lost: it is not closed for another one."""
        self._waiting.remove(connection)
        if connection.address is not None and connection.address in self._waiting_from:
            self._waiting_from[connection.address].remove(connection)
