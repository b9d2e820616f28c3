"""Composition root of the gateway: one process that listens on the shared port."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from aiohttp import web

from libs.messaging.broker import Broker
from libs.messaging.caller import Caller
from libs.persistence.engine import open_database
from libs.runtime.process import Process
from services.gateway.admission import Admission
from services.gateway.application import build_application
from services.gateway.authentication import Authentication
from services.gateway.credentials import Credentials
from services.gateway.endpoint import Endpoints
from services.gateway.failures import Failures
from services.gateway.nonce_partitions import maintain, maintain_for_ever
from services.gateway.settings import Settings

KEEPALIVE_SECONDS = 75.0
BACKLOG = 1024
BROKER_WAIT_SECONDS = 10.0


@asynccontextmanager
async def serve(settings: Settings, process: Process) -> AsyncIterator[None]:
    """Listen and answer until left; then let requests under way finish."""
    keyring, lookup = settings.keyring(), settings.lookup()
    database = open_database(settings.database_url.get_secret_value(), settings.service)
    broker = Broker(settings.amqp_url.get_secret_value(), settings.service)
    caller = Caller(keyring)
    broker.add(caller)
    failures = Failures(database, settings.failures_per_minute)
    endpoints = Endpoints(
        settings,
        Authentication(
            Credentials(database, keyring),
            window_seconds=settings.timestamp_window_seconds,
            show_canonical=not settings.is_production,
        ),
        Admission(database),
        failures,
        caller,
        lookup,
    )
    process.readiness.add("database", database.ping)
    process.readiness.add("broker", broker.ping)
    runner = web.AppRunner(
        build_application(endpoints),
        access_log=None,
        auto_decompress=False,
        handler_cancellation=False,
        keepalive_timeout=KEEPALIVE_SECONDS,
        shutdown_timeout=settings.shutdown_seconds,
    )
    try:
        await maintain(database, settings.timestamp_window_seconds)
        async with (
            broker.open(),
            process.background(
                "nonce-partitions",
                maintain_for_ever(database, settings.timestamp_window_seconds),
            ),
            process.background("failures", failures.exchange_for_ever()),
        ):
            await broker.start(wait_seconds=BROKER_WAIT_SECONDS)
            await runner.setup()
            site = web.TCPSite(
                runner,
                settings.host,
                settings.port,
                backlog=BACKLOG,
                reuse_port=settings.processes > 1,
            )
            await site.start()
            try:
                yield
            finally:
                await runner.cleanup()
    finally:
        await database.close()
