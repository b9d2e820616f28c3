"""The HTTP session of a process with providers, and what bounds an exchange in it."""

from __future__ import annotations

import asyncio
import socket
from weakref import WeakKeyDictionary

import aiohttp
from yarl import URL

from libs import tracing
from libs.providers.errors import AttemptFailed, Failure
from libs.tls import client_context

MAX_ANSWER_BYTES = 8 * 1024 * 1024
CONNECT_SECONDS = 2.0
KEEP_ALIVE_SECONDS = 30
UNACKNOWLEDGED_SECONDS = 15
"""After which the kernel gives up data that the peer has not acknowledged. Without this bound it goes on sending for
some 100 s, also what was written to a connection that is closed since, so that a write arrives after the longest
transit that `Capabilities` promise.
"""

_CONNECTIONS = WeakKeyDictionary[aiohttp.ClientSession, asyncio.Semaphore]()


def open_session(connections: int, *, ca_file: str | None = None) -> aiohttp.ClientSession:
    """The HTTP session of one process: at most `connections`, kept alive; no cookies, no proxy of the environment.

    Called within a running event loop. The caller closes the session.

    Args:
        ca_file: the CAs of the providers' certificates, instead of those that the system trusts.
    """
    return aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(
            limit=connections,
            keepalive_timeout=KEEP_ALIVE_SECONDS,
            ssl=client_context(ca_file) if ca_file else True,
            socket_factory=_bounded_socket,
        ),
        cookie_jar=aiohttp.DummyCookieJar(),
        auto_decompress=False,
        trust_env=False,
    )


def connections_of(session: aiohttp.ClientSession) -> asyncio.Semaphore:
    """As many slots as the session has connections, shared by all exchanges in it: one that takes a slot first does not
    wait for a connection.
    """
    if (slots := _CONNECTIONS.get(session)) is None:
        assert session.connector is not None
        slots = _CONNECTIONS[session] = asyncio.Semaphore(session.connector.limit)
    return slots


def _bounded_socket(address: aiohttp.AddrInfoType) -> socket.socket:
    family, kind, protocol, _, _ = address
    bounded = socket.socket(family, kind, protocol)
    bounded.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, UNACKNOWLEDGED_SECONDS * 1000)
    return bounded


def note_response(method: str, url: URL, status: int) -> None:
    """In the span of the exchange. Not the URL: its path and query hold what callers have written."""
    if tracing.current() is not None:
        tracing.note(
            {
                "http.request.method": method,
                "http.response.status_code": status,
                "server.address": url.host,
                "server.port": url.port,
            }
        )


async def read_bounded(response: aiohttp.ClientResponse) -> bytes:
    """The body of an answer. Raises AttemptFailed: it is larger than `MAX_ANSWER_BYTES`."""
    content = response.content
    first = await content.readany()
    if content.at_eof():
        return first
    parts = [first]
    size = len(first)
    while not content.at_eof():
        part = await content.readany()
        size += len(part)
        if size > MAX_ANSWER_BYTES:
            raise AttemptFailed(Failure.UNREADABLE, response.status)
        parts.append(part)
    return b"".join(parts)
