"""One of the gateway's two listeners: its application, its connections, and TLS where that is the gateway's own.

Partners and customers have one and operators the other, so that neither can use up the connections of the other.
"""

from __future__ import annotations

import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from aiohttp import web

from libs.runtime.accepting import accepting, until_arrived
from libs.runtime.connections import Connections
from libs.runtime.handshakes import Handshakes
from libs.runtime.process import Process
from libs.runtime.request_handlers import request_handlers
from services.gateway.connection_shares import for_handshakes
from services.gateway.endpoint import Endpoints
from services.gateway.listening import ListenAt, sockets_at
from services.gateway.settings import Settings

KEEPALIVE_SECONDS = 75.0
MAX_HEADERS = 64
"""Of a request; each of at most 8 KB."""
LINGERING_SECONDS = 5.0
"""After the answer to a request, the rest of its body is read and thrown away for this long."""


class Listener:
    """A listener: accepts connections within their bounds, and serves its application on them.

    Args:
        application: makes it for these connections.
        encryption: None: connections are not encrypted.
        in_all: connections, those that are shaking hands included.
    """

    def __init__(
        self,
        settings: Settings,
        at: ListenAt,
        application: Callable[[Endpoints, Connections], web.Application],
        endpoints: Endpoints,
        encryption: ssl.SSLContext | None,
        *,
        in_all: int,
    ) -> None:
        self._settings = settings
        self._at = at
        shaking_hands = for_handshakes(in_all, by_tls=encryption is not None)
        self._connections = Connections(
            endpoints.counted_peer,
            per_address=min(settings.connections_per_address, in_all),
            in_all=in_all - shaking_hands,
            stalled_seconds=settings.stalled_seconds,
        )
        self._handshakes = (
            Handshakes(
                encryption,
                endpoints.counted_peer,
                per_address=min(settings.connections_per_address, max(1, shaking_hands // 4)),
                in_all=shaking_hands,
                seconds=settings.stalled_seconds,
            )
            if encryption is not None
            else None
        )
        self._runner = web.AppRunner(
            application(endpoints, self._connections),
            handler_cancellation=False,
            shutdown_timeout=settings.answering_seconds / 2,  # aiohttp waits for it twice
        )

    @asynccontextmanager
    async def listening(self, process: Process) -> AsyncIterator[None]:
        """While the body runs, connections are accepted."""
        await self._runner.setup()
        server = self._runner.server
        assert server is not None
        handlers = request_handlers(
            server,
            access_log=None,
            auto_decompress=False,
            keepalive_timeout=KEEPALIVE_SECONDS,
            max_headers=MAX_HEADERS,
            lingering_time=LINGERING_SECONDS,
        )
        protocols = self._connections.protocols(handlers)
        slow_ones = self._connections.close_slow_ones_for_ever()
        async with (
            process.background("connections", slow_ones),
            accepting(process, await sockets_at(self._at), protocols, self._handshakes),
        ):
            yield

    def renew(self, encryption: ssl.SSLContext) -> None:
        """For connections from now on, where they are encrypted."""
        if self._handshakes is not None:
            self._handshakes.renew(encryption)

    async def drain(self) -> None:
        """Close each connection after its next answer."""
        await self._connections.drain(self._settings.longest_drain_seconds)

    async def close(self) -> None:
        """Let requests under way finish, those of the last connections included, and close what is left."""
        seconds = self._settings.longest_drain_seconds
        await until_arrived(self._connections, self._handshakes, seconds)
        await self._runner.cleanup()
