"""Connections to callback URLs: only to addresses that were checked, kept for a short while, bounded.

Two guards, since aiohttp resolves names but not literal addresses: the resolver checks every address of a name and
hands on these very ones, so that nothing is resolved twice; and the socket factory checks the one address that is
dialled, wherever it came from. Names are looked up at every dial, and a kept connection lives for a minute at most, so
that a name that moves is followed.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
import time
from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import dataclass

import aiohttp
from aiohttp.abc import AbstractResolver, ResolveResult

from services.webhook_dispatcher.adapters.callback_urls import CallbackPolicy, TargetClass
from services.webhook_dispatcher.adapters.lookups import Lookups
from services.webhook_dispatcher.adapters.strict_connection import speak_strictly

MAX_ADDRESSES_DIALLED = 4
IDLE_SECONDS = 4.0
"""Shorter than the 5 s after which many servers close an idle connection: a post on a closed one is sent twice."""
MAX_LINE_BYTES = 8190
MAX_HEADERS = 64
READ_BYTES = 16 * 1024
HEADERS = {"User-Agent": "Bankside-Webhooks/1", "Accept": "*/*", "Accept-Encoding": "identity"}


class ForbiddenAddress(Exception):
    """Nothing is sent to where this leads."""


class CheckingResolver(AbstractResolver):
    """Addresses of names, if all of them are admitted."""

    def __init__(self, policy: CallbackPolicy, target_class: TargetClass, lookups: Lookups) -> None:
        self._policy = policy
        self._target_class = target_class
        self._lookups = lookups

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_UNSPEC
    ) -> list[ResolveResult]:
        """Raises ForbiddenAddress and NotResolved, which aiohttp passes on as they are."""
        addresses = await self._lookups.addresses(host, _lease.get().tenant)
        if not all(self._policy.admits(self._target_class, address) for address in addresses):
            raise ForbiddenAddress
        return [
            ResolveResult(hostname=host, host=address, port=port, family=family, proto=0, flags=0)
            for address in addresses[:MAX_ADDRESSES_DIALLED]
        ]

    async def close(self) -> None:
        """The lookups are closed by their owner."""


@dataclass(slots=True)
class Lease:
    """A session for one exchange.

    Args:
        tenant: for whose subscription; its names are looked up in its share of the threads.
        release: to be called when the exchange is over, however it ended.
        has_dialled: its connection was opened for it, rather than kept from an earlier exchange.
    """

    session: aiohttp.ClientSession
    tenant: str
    release: Callable[[], None]
    has_dialled: bool = False


_lease: ContextVar[Lease] = ContextVar("lease")
"""Of the exchange that the task carries out: a connection is dialled in the context of its request."""


class _Generation:
    """Sessions that end together: for each class of targets one that keeps connections, and one that does not."""

    def __init__(self, ends_at: float) -> None:
        self.ends_at = ends_at
        self.sessions: dict[tuple[TargetClass, bool], aiohttp.ClientSession] = {}
        self.in_use = 0
        self.dialled = 0

    async def close(self) -> None:
        for session in self.sessions.values():
            await session.close()


class Connections:
    """Sessions to post with. To be made within a running loop, and closed.

    Kept connections end with their generation: after `lifetime_seconds`, or when `limit` were dialled in it, which
    bounds how many there are at any moment to `limit` and those in use.

    Args:
        limit: at least the number of posts at one time: a post that waited for a connection would lose of its time.
            The caller bounds how many go to one host.
        ssl_context: instead of the system's authorities.
    """

    def __init__(
        self,
        policy: CallbackPolicy,
        lookups: Lookups,
        *,
        limit: int,
        lifetime_seconds: float,
        ssl_context: ssl.SSLContext | None = None,
    ) -> None:
        self._policy = policy
        self._lookups = lookups
        self._limit = limit
        self._lifetime_seconds = lifetime_seconds
        self._ssl_context = ssl_context or system_context()
        self._current = self._begin()
        self._closing: set[asyncio.Task[None]] = set()

    def lease(self, target_class: TargetClass, tenant: str, *, keeps: bool = True) -> Lease:
        """A session for an exchange of this task.

        Args:
            keeps: the connection may be a kept one, and is kept afterwards; otherwise it is a new one.
        """
        generation = self._current
        if time.monotonic() >= generation.ends_at or generation.dialled >= self._limit:
            self._current = self._begin()
            self._close_if_over(generation)
            generation = self._current
        session = generation.sessions.get((target_class, keeps))
        if session is None:
            session = self._open(generation, target_class, keeps=keeps)
            generation.sessions[target_class, keeps] = session
        generation.in_use += 1

        def release() -> None:
            generation.in_use -= 1
            self._close_if_over(generation)

        lease = Lease(session, tenant, release)
        _lease.set(lease)
        return lease

    async def close(self) -> None:
        await self._current.close()
        await asyncio.gather(*self._closing)

    def _begin(self) -> _Generation:
        return _Generation(time.monotonic() + self._lifetime_seconds)

    def _close_if_over(self, generation: _Generation) -> None:
        if generation is not self._current and not generation.in_use:
            task = asyncio.create_task(generation.close(), name="close connections")
            self._closing.add(task)
            task.add_done_callback(self._closing.discard)

    def _open(
        self, generation: _Generation, target_class: TargetClass, *, keeps: bool
    ) -> aiohttp.ClientSession:
        def dial(info: aiohttp.AddrInfoType) -> socket.socket:
            _lease.get().has_dialled = True
            family, kind, protocol, _, address = info
            if not self._policy.admits(target_class, str(address[0])):
                raise ForbiddenAddress
            generation.dialled += 1
            return socket.socket(family, kind, protocol)

        kept_seconds = min(IDLE_SECONDS, self._lifetime_seconds)
        connector = aiohttp.TCPConnector(
            resolver=CheckingResolver(self._policy, target_class, self._lookups),
            use_dns_cache=False,
            socket_factory=dial,
            ssl=self._ssl_context,
            limit=self._limit,
            force_close=not keeps,
            keepalive_timeout=kept_seconds if keeps else None,
        )
        speak_strictly(connector)
        return aiohttp.ClientSession(
            connector=connector,
            headers=HEADERS,
            cookie_jar=aiohttp.DummyCookieJar(),
            trust_env=False,
            auto_decompress=False,
            read_bufsize=READ_BYTES,
            max_line_size=MAX_LINE_BYTES,
            max_field_size=MAX_LINE_BYTES,
            max_headers=MAX_HEADERS,
        )


def system_context() -> ssl.SSLContext:
    """For endpoints of the authorities that the system trusts."""
    context = ssl.create_default_context()
    context.set_alpn_protocols(["http/1.1"])
    return context
