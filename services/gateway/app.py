"""Composition root of the gateway: one process that listens on the shared port."""

from __future__ import annotations

import asyncio
import resource
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager

from aiohttp import web

from libs.handling.audit_head import log_head_for_ever
from libs.handling.periodic import tolerating_outage
from libs.messaging.broker import Broker
from libs.messaging.caller import Caller
from libs.persistence.engine import open_database
from libs.runtime.process import Misconfigured, Process
from services.gateway.admission import Admission
from services.gateway.application import build_application
from services.gateway.authentication import Authentication
from services.gateway.certificates import follow_for_ever
from services.gateway.connections import Connections
from services.gateway.credentials import Credentials
from services.gateway.endpoint import Endpoints
from services.gateway.expiry import measure_for_ever
from services.gateway.failures import Failures
from services.gateway.handshakes import Handshakes
from services.gateway.last_use import LastUse
from services.gateway.listening import listening_sockets
from services.gateway.nonce_partitions import maintain, maintain_for_ever
from services.gateway.refusals import Refusals
from services.gateway.settings import Settings

KEEPALIVE_SECONDS = 75.0
BACKLOG = 1024
BROKER_WAIT_SECONDS = 10.0
MAX_HEADERS = 64
"""Of a request; each of at most 8 KB."""
LINGERING_SECONDS = 5.0
"""What is left of a body after the answer to its request is read, and thrown away, for so long."""
RESERVED_DESCRIPTORS = 256
"""For the database, the broker and files."""


def possible_connections(wanted: int) -> int:
    """As many of them as this process may have files open for, once that is raised as far as is needed and allowed.

    Raises:
        Misconfigured: the system allows too few files.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    needed = wanted + RESERVED_DESCRIPTORS
    allowed = needed if hard == resource.RLIM_INFINITY else min(needed, hard)
    if soft != resource.RLIM_INFINITY and soft < allowed:
        resource.setrlimit(resource.RLIMIT_NOFILE, (allowed, hard))
    if allowed <= RESERVED_DESCRIPTORS:
        raise Misconfigured(
            f"let the gateway open more than {RESERVED_DESCRIPTORS} files: `ulimit -Hn` is {hard}."
        )
    return allowed - RESERVED_DESCRIPTORS


@asynccontextmanager
async def _listening(
    settings: Settings,
    process: Process,
    protocols: Callable[[], asyncio.Protocol],
    handshakes: Handshakes | None,
) -> AsyncIterator[None]:
    """While the body runs, connections are accepted."""
    sockets = listening_sockets(settings.host, settings.port, BACKLOG)
    async with AsyncExitStack() as opened:
        for listening in await opened.enter_async_context(sockets):
            if handshakes is None:
                server = await asyncio.get_running_loop().create_server(
                    protocols, sock=listening, backlog=BACKLOG
                )
                opened.callback(server.close)
            else:
                accepting = handshakes.accept_for_ever(listening, protocols)
                await opened.enter_async_context(process.background("tls-handshakes", accepting))
        if handshakes is not None:
            following = follow_for_ever(settings, handshakes.renew)
            await opened.enter_async_context(process.background("tls-certificate", following))
        yield


@asynccontextmanager
async def serve(settings: Settings, process: Process) -> AsyncIterator[None]:
    """Listen and answer until left; then let requests under way finish."""
    keyring, lookup = settings.ring("storage_keys"), settings.lookup()
    encryption = settings.encryption()
    database = open_database(
        settings.database_url.get_secret_value(),
        settings.service,
        ca_file=settings.database_ca_file,
    )
    broker = Broker(
        settings.amqp_url.get_secret_value(), settings.service, ca_file=settings.amqp_ca_file
    )
    caller = Caller(settings.message_sealer())
    broker.add(caller)
    failures = Failures(database, settings.failures_per_minute)
    refusals = Refusals(database)
    last_use = LastUse(database)
    endpoints = Endpoints(
        settings,
        Authentication(
            Credentials(database, keyring),
            window_seconds=settings.timestamp_window_seconds,
            show_canonical=not settings.is_production,
        ),
        Admission(database),
        failures,
        refusals,
        last_use,
        caller,
        lookup,
    )
    possible = possible_connections(settings.connections)
    shaking_hands = max(1, possible // 4) if encryption is not None else 0
    connections = Connections(
        endpoints.counted_peer,
        per_address=settings.connections_per_address,
        in_all=possible - shaking_hands,
        stalled_seconds=settings.stalled_seconds,
    )
    handshakes = (
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
    process.readiness.add("database", database.ping)
    process.readiness.add("broker", broker.ping)
    drain_seconds = min(settings.drain_seconds, settings.shutdown_seconds / 2)
    runner = web.AppRunner(
        build_application(endpoints, connections),
        access_log=None,
        auto_decompress=False,
        handler_cancellation=False,
        keepalive_timeout=KEEPALIVE_SECONDS,
        shutdown_timeout=settings.shutdown_seconds - drain_seconds,
        max_headers=MAX_HEADERS,
        lingering_time=LINGERING_SECONDS,
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
            process.background("refusals", refusals.write_for_ever()),
            process.background("audit-head", log_head_for_ever(database)),
            process.background("last-use", last_use.write_for_ever()),
            process.background("key-expiry", measure_for_ever(database)),
            process.background("connections", connections.close_slow_ones_for_ever()),
        ):
            await broker.start(wait_seconds=BROKER_WAIT_SECONDS)
            await runner.setup()
            handler = runner.server
            assert handler is not None
            try:
                async with _listening(
                    settings, process, connections.protocols(handler), handshakes
                ):
                    yield
                    await connections.drain(drain_seconds)
            finally:
                await runner.cleanup()
                await tolerating_outage("last_use", last_use.write)
                await tolerating_outage("refusals", refusals.write)
    finally:
        await database.close()
