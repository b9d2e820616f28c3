"""Composition root of the gateway: one process that listens on the shared ports."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any, NoReturn

from libs.handling.audit_head import log_head_for_ever
from libs.handling.key_checks import require_known_keys
from libs.handling.periodic import tolerating_outage
from libs.messaging.broker import Broker
from libs.messaging.request_deadlines import RequestDeadlines
from libs.messaging.service_client import ServiceClient
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
from services.gateway.connection_shares import commands_of_a_tenant
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

FIRST_SESSION_SECONDS = 10.0
"""A gateway waits up to this long for its first session with the broker before it listens: until then each request that
asks a service is 503. Then it listens all the same: its documents and its own operations need no service.
"""
OPERATOR_CONNECTIONS = 256
"""In one process."""


@asynccontextmanager
async def serve(settings: Settings, process: Process) -> AsyncIterator[None]:
    """Listen and answer until left; then let requests under way finish."""
    gateway = _compose(settings, process)
    async with AsyncExitStack() as opened:
        opened.push_async_callback(gateway.database.close)
        await _prepare(settings, gateway.database, gateway.keyring)
        await opened.enter_async_context(gateway.broker.open())
        for name, task in _background_tasks(settings, gateway):
            await opened.enter_async_context(process.background(name, task))
        await gateway.broker.start(wait_seconds=FIRST_SESSION_SECONDS)
        # Left from the last to the first: what the last requests counted is written after the listeners are closed.
        for name, write in (
            ("traffic", gateway.traffic.write),
            ("refusals", gateway.refusals.write),
            ("last_use", gateway.last_use.write),
        ):
            opened.push_async_callback(tolerating_outage, name, write)
        opened.push_async_callback(gateway.operator_documents.close)
        opened.push_async_callback(gateway.public_documents.close)
        opened.push_async_callback(_of_each, gateway.listeners, Listener.close)
        # Begun once there is a session with the broker, by which it asks the services.
        await opened.enter_async_context(
            process.background("queue-samples", gateway.queues.write_for_ever())
        )
        for listener in gateway.listeners:
            await opened.enter_async_context(listener.listening(process))
        if gateway.certificate.context is not None:
            following = gateway.certificate.follow_for_ever(partial(_renew, gateway.listeners))
            await opened.enter_async_context(process.background("tls-certificate", following))
        yield
        # Every request is answered before the listeners close its connection.
        gateway.deadlines.bring_forward(settings.last_answer_seconds)
        await _of_each(gateway.listeners, Listener.drain)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Gateway:
    """The parts of the gateway, composed and not begun."""

    database: Database
    keyring: Keyring
    broker: Broker
    certificate: Certificate
    failures: Failures
    refusals: Refusals
    last_use: LastUse
    traffic: TrafficCounts
    queues: QueueSamples
    service_client: ServiceClient
    deadlines: RequestDeadlines
    endpoints: Endpoints
    public_documents: Documents
    operator_documents: Documents
    listeners: tuple[Listener, Listener]


def _compose(settings: Settings, process: Process) -> _Gateway:
    """Compose the gateway, and add the checks of its readiness to the process."""
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
    deadlines = RequestDeadlines()
    for_callers, for_operators_only = _connections(settings)
    service_client = ServiceClient(
        settings.message_sealer(),
        deadlines,
        commands_of_a_tenant=commands_of_a_tenant(
            for_callers, by_tls=certificate.context is not None
        ),
    )
    broker.add(service_client)
    process.readiness.add("database", database.ping)
    process.readiness.add("broker", broker.ping)
    failures = Failures(database, settings.failures_per_minute)
    refusals = Refusals(database)
    last_use = LastUse(database)
    traffic = TrafficCounts(database)
    queues = QueueSamples(database, Services(service_client, {}))
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
        service_client,
        deadlines,
        lookup,
        Answering(
            handlers_of(
                service_client,
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
    return _Gateway(
        database=database,
        keyring=keyring,
        broker=broker,
        certificate=certificate,
        failures=failures,
        refusals=refusals,
        last_use=last_use,
        traffic=traffic,
        queues=queues,
        service_client=service_client,
        deadlines=deadlines,
        endpoints=endpoints,
        public_documents=public_documents,
        operator_documents=operator_documents,
        listeners=_listeners(
            settings,
            endpoints,
            certificate,
            public_documents,
            operator_documents,
            for_callers=for_callers,
            for_operators_only=for_operators_only,
        ),
    )


def _background_tasks(
    settings: Settings, gateway: _Gateway
) -> Iterator[tuple[str, Coroutine[Any, Any, NoReturn]]]:
    """What runs beside the requests, each with the name of its task, from before the first request to after the last.

    An iterator, so that no coroutine is made that is never awaited.
    """
    database = gateway.database
    yield "nonce-partitions", maintain_for_ever(database, settings.timestamp_window_seconds)
    yield "failures", gateway.failures.exchange_for_ever()
    yield "refusals", gateway.refusals.write_for_ever()
    yield "audit-head", log_head_for_ever(database)
    yield "last-use", gateway.last_use.write_for_ever()
    yield "traffic", gateway.traffic.write_for_ever()
    yield "key-expiry", measure_for_ever(database)
    yield "login-attempts", forget_old_for_ever(database)
    yield "replies-at-stop", gateway.service_client.end_replies_at_stop()


def _connections(settings: Settings) -> tuple[int, int]:
    """How many callers may have, and how many operators, who have a share of the possible ones of their own."""
    possible = possible_connections(settings.service, settings.connections + OPERATOR_CONNECTIONS)
    for_operators_only = min(OPERATOR_CONNECTIONS, max(2, possible // 16))
    return possible - for_operators_only, for_operators_only


def _listeners(
    settings: Settings,
    endpoints: Endpoints,
    certificate: Certificate,
    public_documents: Documents,
    operator_documents: Documents,
    *,
    for_callers: int,
    for_operators_only: int,
) -> tuple[Listener, Listener]:
    return (
        Listener(
            settings,
            public(settings),
            partial(public_application, public_documents),
            endpoints,
            certificate.context,
            in_all=for_callers,
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
    await require_known_keys(database, settings)
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
