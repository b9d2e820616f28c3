"""Composition root of the console."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import aiohttp
from aiohttp import web

from libs.runtime.connections import Connections
from libs.runtime.process import Process
from services.console.application import build_application
from services.console.gateway import SignedGateway
from services.console.settings import Settings

KEEPALIVE_SECONDS = 75.0
MAX_HEADERS = 64
CONNECTIONS_TO_GATEWAY = 64
CONNECTIONS = 512
CONNECTIONS_PER_ADDRESS = 256
"""Of browsers. A proxy in front of it is one address."""
STALLED_SECONDS = 10.0
"""For headers, for an answer of which nothing is taken, and for the handshake of TLS."""


@asynccontextmanager
async def serve(settings: Settings, process: Process) -> AsyncIterator[None]:
    """Listen and answer until left; then drain connections, and let requests under way finish.

    It is ready without the gateway, too: its pages then say that the gateway cannot be reached.
    """
    encryption = settings.encryption()
    connector = aiohttp.TCPConnector(
        limit=CONNECTIONS_TO_GATEWAY, ssl=settings.encryption_to_gateway()
    )
    async with aiohttp.ClientSession(connector=connector, trust_env=False) as session:
        gateway = SignedGateway(
            settings.operator_url, settings.credentials(), session, settings.answer_seconds
        )
        connections = Connections(
            lambda peer: peer,
            per_address=CONNECTIONS_PER_ADDRESS,
            in_all=CONNECTIONS,
            stalled_seconds=STALLED_SECONDS,
        )
        runner = web.AppRunner(
            build_application(settings, gateway, connections),
            access_log=None,
            auto_decompress=False,
            handler_cancellation=False,
            keepalive_timeout=KEEPALIVE_SECONDS,
            shutdown_timeout=settings.shutdown_seconds - settings.longest_drain_seconds,
            max_headers=MAX_HEADERS,
        )
        await runner.setup()
        handler = runner.server
        assert handler is not None
        slow_ones = connections.close_slow_ones_for_ever()
        try:
            async with process.background("connections", slow_ones):
                server = await asyncio.get_running_loop().create_server(
                    connections.protocols(handler),
                    settings.host,
                    settings.port,
                    ssl=encryption,
                    ssl_handshake_timeout=STALLED_SECONDS if encryption else None,
                )
                process.log.info("listening", origin=settings.origin)
                try:
                    yield
                    await connections.drain(settings.longest_drain_seconds)
                finally:
                    server.close()
        finally:
            await runner.cleanup()
