"""Composition root of the gateway: one process that listens on the shared ports."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from typing import Any

from libs.handling.audit_head import log_head_for_ever
from libs.handling.key_checks import require_known_keys
from libs.handling.periodic import tolerating_outage
from libs.messaging.broker import Broker
from libs.messaging.caller import Caller
from libs.persistence.engine import Database, open_database
from libs.persistence.retries import until_available
from libs.persistence.sealing import Keyring
from libs.runtime.open_files import possible_connections
from libs.runtime.process import Process
from services.gateway import console_key
from services.gateway.admission import Admission
from services.gateway.application import operator_application, public_application
from services.gateway.authentication import Authentication
from services.gateway.certificates import Certificate
from services.gateway.credentials import Credentials
from services.gateway.documents import Documents
from services.gateway.endpoint import Endpoints
from services.gateway.expiry import measure_for_ever
from services.gateway.failures import Failures
from services.gateway.last_use import LastUse
from services.gateway.listener import Listener
from services.gateway.listening import for_operators, public
from services.gateway.lock_out import forget_old_for_ever
from services.gateway.logins import Logins
from services.gateway.nonce_partitions import maintain, maintain_for_ever
from services.gateway.operating.answering import Answering
from services.gateway.operating.asking import Services
from services.gateway.operating.handlers import handlers_of
from services.gateway.passwords import Passwords
from services.gateway.queue_samples import QueueSamples
from services.gateway.refusals import Refusals
from services.gateway.settings import Settings
from services.gateway.traffic import TrafficCounts

BROKER_WAIT_SECONDS = 10.0
OPERATOR_CONNECTIONS = 256
"""In one process."""


@asynccontextmanager
async def serve(settings: Settings, process: Process) -> AsyncIterator[None]:
    """Listen and answer until left; then let requests under way finish."""
    keyring, lookup = settings.ring("storage_keys"), settings.lookup()
    certificate = Certificate(settings)
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
    traffic = TrafficCounts(database)
    queues = QueueSamples(database, Services(caller, {}))
    passwords = Passwords()
    logins = Logins(
        database,
        keyring,
        lookup,
        passwords,
        refusals,
        session_seconds=settings.session_seconds,
        idle_seconds=settings.session_idle_seconds,
    )
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
        Answering(
            handlers_of(
                caller,
                database=database,
                keyring=keyring,
                passwords=passwords,
                logins=logins,
                traffic_counts=traffic,
                queues=queues,
                require_idempotency_keys=settings.is_production,
            )
        ),
        logins,
        traffic,
    )
    public_documents, operator_documents = Documents("public"), Documents("operators")
    listeners = _listeners(settings, endpoints, certificate, public_documents, operator_documents)
    process.readiness.add("database", database.ping)
    process.readiness.add("broker", broker.ping)
    try:
        await _prepare(settings, database, keyring)
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
            process.background("traffic", traffic.write_for_ever()),
            process.background("key-expiry", measure_for_ever(database)),
            process.background("login-attempts", forget_old_for_ever(database)),
        ):
            await broker.start(wait_seconds=BROKER_WAIT_SECONDS)
            try:
                async with AsyncExitStack() as opened:
                    # Begun once there is a session with the broker, by which it asks the services.
                    await opened.enter_async_context(
                        process.background("queue-samples", queues.write_for_ever())
                    )
                    for listener in listeners:
                        await opened.enter_async_context(listener.listening(process))
                    if certificate.context is not None:
                        following = certificate.follow_for_ever(partial(_renew, listeners))
                        await opened.enter_async_context(
                            process.background("tls-certificate", following)
                        )
                    yield
                    await _of_each(listeners, Listener.drain)
            finally:
                async with AsyncExitStack() as closing:  # each of them, also after one that fails
                    for name, write in (
                        ("traffic", traffic.write),
                        ("refusals", refusals.write),
                        ("last_use", last_use.write),
                    ):
                        closing.push_async_callback(tolerating_outage, name, write)
                    closing.push_async_callback(operator_documents.close)
                    closing.push_async_callback(public_documents.close)
                    await _of_each(listeners, Listener.close)
    finally:
        await database.close()


def _listeners(
    settings: Settings,
    endpoints: Endpoints,
    certificate: Certificate,
    public_documents: Documents,
    operator_documents: Documents,
) -> tuple[Listener, Listener]:
    """For callers, and for operators, who have a share of the possible connections of their own."""
    possible = possible_connections(settings.service, settings.connections + OPERATOR_CONNECTIONS)
    for_operators_only = min(OPERATOR_CONNECTIONS, max(2, possible // 16))
    return (
        Listener(
            settings,
            public(settings),
            partial(public_application, public_documents),
            endpoints,
            certificate.context,
            in_all=possible - for_operators_only,
        ),
        Listener(
            settings,
            for_operators(settings),
            partial(operator_application, operator_documents),
            endpoints,
            certificate.context,
            in_all=for_operators_only,
        ),
    )


async def _prepare(settings: Settings, database: Database, keyring: Keyring) -> None:
    """What the database has to have before the first request: the keys of this process, partitions for nonces, and the
    key of the console.

    Raises:
        Misconfigured
    """
    await until_available("key-checks", lambda: require_known_keys(database, settings))
    await until_available(
        "nonce-partitions", lambda: maintain(database, settings.timestamp_window_seconds)
    )
    if settings.console_key is not None and settings.console_secret is not None:
        subscription_key = settings.console_key.get_secret_value()
        secret = settings.console_secret.get_secret_value()
        await until_available(
            "console-key",
            lambda: console_key.register(database, keyring, subscription_key, secret),
        )


def _renew(listeners: Iterable[Listener], encryption: ssl.SSLContext) -> None:
    for listener in listeners:
        listener.renew(encryption)


async def _of_each(
    listeners: Iterable[Listener], work: Callable[[Listener], Coroutine[Any, Any, None]]
) -> None:
    async with asyncio.TaskGroup() as group:
        for listener in listeners:
            group.create_task(work(listener), name=work.__name__)
