"""Composition root of the console."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import aiohttp
from aiohttp import web

from libs.runtime.process import Process
from services.console.application import build_application
from services.console.gateway import SignedGateway
from services.console.settings import Settings

KEEPALIVE_SECONDS = 75.0
MAX_HEADERS = 64
CONNECTIONS_TO_GATEWAY = 64


@asynccontextmanager
async def serve(settings: Settings, process: Process) -> AsyncIterator[None]:
    """Listen and answer until left; then let requests under way finish.

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
        runner = web.AppRunner(
            build_application(settings, gateway),
            access_log=None,
            handler_cancellation=False,
            keepalive_timeout=KEEPALIVE_SECONDS,
            shutdown_timeout=settings.shutdown_seconds,
            max_headers=MAX_HEADERS,
        )
        await runner.setup()
        try:
            site = web.TCPSite(runner, settings.host, settings.port, ssl_context=encryption)
            await site.start()
            process.log.info("listening", origin=settings.origin)
            yield
        finally:
            await runner.cleanup()
