"""Composition root of the console."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import aiohttp
from aiohttp import web

from libs.runtime import served_certificate
from libs.runtime.accepting import accepting, bound_at, until_arrived
from libs.runtime.connections import Connections
from libs.runtime.handshakes import Handshakes
from libs.runtime.open_files import possible_connections
from libs.runtime.process import Process
from libs.runtime.request_handlers import request_handlers
from services.console.application import build_application
from services.console.gateway import SignedGateway
from services.console.settings import Settings

KEEPALIVE_SECONDS = 75.0
MAX_HEADERS = 64
CONNECTIONS_TO_GATEWAY = 64
CONNECTIONS = 512
CONNECTIONS_PER_ADDRESS = 256
"""Of browsers. A proxy in front of it is one address. With TLS of its own, a quarter of them is for handshakes."""
STALLED_SECONDS = 10.0
"""For headers, for an answer of which nothing is taken, and for a handshake of TLS."""


@asynccontextmanager
async def serve(settings: Settings, process: Process) -> AsyncIterator[None]:
    """Listen and answer until left; then drain connections, and let requests under way finish.

    It is ready without the gateway, too: its pages then say that the gateway cannot be reached.
    """
    encryption = settings.encryption()
    served_certificate.measure(settings.tls_certificate_file)
    connector = aiohttp.TCPConnector(
        limit=CONNECTIONS_TO_GATEWAY, ssl=settings.encryption_to_gateway()
    )
    async with aiohttp.ClientSession(connector=connector, trust_env=False) as session:
        gateway = SignedGateway(
            settings.operator_url, settings.credentials(), session, settings.answer_seconds
        )
        possible = possible_connections(process.service, CONNECTIONS + CONNECTIONS_TO_GATEWAY)
        in_all = max(2, possible - CONNECTIONS_TO_GATEWAY)
        shaking_hands = in_all // 4 if encryption is not None else 0
        connections = Connections(
            _itself,
            per_address=CONNECTIONS_PER_ADDRESS,
            in_all=in_all - shaking_hands,
            stalled_seconds=STALLED_SECONDS,
        )
        handshakes = (
            Handshakes(
                encryption,
                _itself,
                per_address=max(1, shaking_hands // 2),
                in_all=max(1, shaking_hands),
                seconds=STALLED_SECONDS,
            )
            if encryption is not None
            else None
        )
        runner = web.AppRunner(
            build_application(settings, gateway, connections),
            handler_cancellation=False,
            shutdown_timeout=settings.answering_seconds / 2,  # aiohttp waits for it twice
        )
        await runner.setup()
        server = runner.server
        assert server is not None
        handlers = request_handlers(
            server,
            access_log=None,
            auto_decompress=False,
            keepalive_timeout=KEEPALIVE_SECONDS,
            max_headers=MAX_HEADERS,
        )
        slow_ones = connections.close_slow_ones_for_ever()
        try:
            async with (
                process.background("connections", slow_ones),
                accepting(
                    process,
                    await bound_at(settings.host, settings.port),
                    connections.protocols(handlers),
                    handshakes,
                ),
            ):
                process.log.info("listening", origin=settings.origin)
                yield
                await connections.drain(settings.longest_drain_seconds)
        finally:
            await until_arrived(connections, handshakes, settings.longest_drain_seconds)
            await runner.cleanup()


def _itself(peer: str) -> str:
    """A browser's address counts as it is."""
    return peer
