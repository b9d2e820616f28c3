"""What `bankside doctor` looks at with a service's own settings: sentences that say what to do."""

from __future__ import annotations

import asyncio
import re
import uuid
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from importlib import import_module

import aiohttp
import asyncpg
from aio_pika import Message
from aio_pika.exceptions import ChannelClosed, ChannelNotFoundEntity
from aiormq.exceptions import AuthenticationError, ProbableAuthenticationError
from sqlalchemy import MetaData

from libs.cli.refused_connections import SCHEMAS, database_refusal, unreachable
from libs.messaging.broker_errors import (
    BROKER_ERRORS,
    is_refused_virtual_host,
    session_loss_as_error,
)
from libs.messaging.connection import Connection, connect
from libs.messaging.permissions import permissions_of
from libs.messaging.topology import replies_queue
from libs.persistence.addressing import connect_arguments
from libs.runtime.listening_settings import ListeningSettings
from libs.runtime.provider_settings import ProviderSettings
from libs.runtime.service_settings import MessagingSettings
from libs.runtime.settings import ServiceSettings
from libs.runtime.start_checks import (
    clock_that_is_off,
    seconds_ahead,
    simulator_as_provider,
)
from libs.tls import client_context, expiry_of

SECONDS = 10.0
"""For one server."""
EXPIRES_SOON = timedelta(days=14)
"""Of a certificate: as the alert BanksideCertificateExpiring."""
DEFINITIONS = 'load the definitions ("Users of the broker" in deploy/README.md)'

_COLUMNS = """
SELECT relation.relname, attribute.attname
FROM pg_attribute attribute JOIN pg_class relation ON relation.oid = attribute.attrelid
WHERE relation.relnamespace = to_regnamespace(current_schema()) AND relation.relkind IN ('r', 'p')
  AND attribute.attnum > 0 AND NOT attribute.attisdropped
"""
_MAY_CHANGE_TABLES = """
SELECT (SELECT rolsuper OR rolcreaterole OR rolcreatedb FROM pg_roles WHERE rolname = current_user)
    OR has_database_privilege(current_database(), 'CREATE')
    OR coalesce(has_schema_privilege(current_schema(), 'CREATE'), false)
    OR EXISTS (
        SELECT FROM pg_class
        WHERE relnamespace = to_regnamespace(current_schema()) AND pg_has_role(relowner, 'MEMBER')
    )
"""


async def certificate(settings: ListeningSettings) -> AsyncIterator[str]:
    """The one that callers are served: not about to expire."""
    path = settings.tls_certificate_file
    expires_at = expiry_of(path) if path else None
    if expires_at is not None and expires_at - datetime.now(UTC) < EXPIRES_SOON:
        yield (
            f"renew the certificate in {path}: callers do not connect after {expires_at:%Y-%m-%d %H:%M} UTC."
        )


async def database(settings: ServiceSettings, *, production: bool) -> AsyncIterator[str]:
    """Reachable, migrated, its login without rights over tables; its clock."""
    variable, url = settings.variable("database_url"), settings.database_url.get_secret_value()
    try:
        async with asyncio.timeout(SECONDS):
            connection = await asyncpg.connect(**connect_arguments(url, settings.database_ca_file))
            try:
                rows = await connection.fetch(_COLUMNS)
                changes_tables = await connection.fetchval(_MAY_CHANGE_TABLES)
            finally:
                connection.terminate()
            ahead, uncertain = await seconds_ahead(url, settings.database_ca_file)
    except Exception as error:
        refusal = database_refusal(variable, error)
        if refusal is None:
            raise
        yield refusal
        return
    lacking = _lacking(settings.service, {(row[0], row[1]) for row in rows})
    if lacking:
        yield (
            f"run the migrations (python -m libs.persistence.migrations): the schema lacks {lacking[0]}"
            + (f" and {len(lacking) - 1} more." if lacking[1:] else ".")
        )
    if changes_tables:
        yield (
            f"give {variable} the service's own login, not an owner's: it may change tables; and run"
            f" deploy/postgres/schemas.sql ({SCHEMAS})."
        )
    if production:
        for sentence in clock_that_is_off(ahead, uncertain):
            yield sentence


def _lacking(service: str, present: set[tuple[str, str]]) -> list[str]:
    """The columns of the service's tables that are not there."""
    metadata: MetaData = import_module(f"services.{service}.tables").metadata
    return [
        f"{table.name}.{column.name}"
        for table in metadata.sorted_tables
        for column in table.columns
        if (table.name, column.name) not in present
    ]


async def broker(settings: MessagingSettings) -> AsyncIterator[str]:
    """Reachable, set up, its user with the permissions of the service and no others."""
    variable = settings.variable("amqp_url")
    try:
        async with asyncio.timeout(SECONDS):
            connection = await connect(
                settings.amqp_url.get_secret_value(),
                "doctor",
                heartbeat_seconds=60,
                ca_file=settings.amqp_ca_file,
            )
            try:
                with session_loss_as_error():
                    found = await _permissions(connection, settings.service)
            finally:
                await connection.end(politely=True)
    except (AuthenticationError, ProbableAuthenticationError):
        yield f"RabbitMQ refuses the user in {variable}: {DEFINITIONS}."
        return
    except BROKER_ERRORS as error:
        if is_refused_virtual_host(error):
            yield (
                f"RabbitMQ does not open the virtual host in {variable} to its user: set one that exists,"
                f" {DEFINITIONS}, or raise the limit of connections of the virtual host or of the user."
            )
        else:
            yield unreachable(variable, "BANKSIDE_AMQP_CA_FILE", error)
        return
    for sentence in found:
        yield f"{sentence}: {DEFINITIONS}."


async def _permissions(connection: Connection, service: str) -> list[str]:
    permissions = permissions_of(service)
    found = []
    for exchange in permissions.topics:
        async with connection.channel() as channel:
            try:
                await channel.get_exchange(exchange)
            except ChannelNotFoundEntity:
                found.append(f"there is no exchange {exchange}")
    own = replies_queue(service, f"doctor-{uuid.uuid4().hex}")
    if re.match(permissions.configure, own) and not await _may_declare(connection, own):
        found.append(f"the user {service} may not declare queues of its own")
    if await _may_declare(connection, f"bankside.doctor.{uuid.uuid4().hex}"):
        found.append(f"the user {service} may declare any queue")
    if await _may_write_to_the_default_exchange(connection):
        found.append(f"the user {service} may publish to any queue")
    return found


async def _may_declare(connection: Connection, queue: str) -> bool:
    channel = await connection.channel()
    try:
        await channel.declare_queue(queue, exclusive=True, auto_delete=True)
    except ChannelClosed:
        return False
    await channel.close()
    return True


async def _may_write_to_the_default_exchange(connection: Connection) -> bool:
    """By a message that no queue takes."""
    channel = await connection.channel()
    try:
        await channel.default_exchange.publish(
            Message(b""), f"bankside.doctor.{uuid.uuid4().hex}", mandatory=False
        )
    except (ChannelClosed, RuntimeError, ConnectionError):
        return False
    await channel.close()
    return True


async def providers(settings: ProviderSettings, *, production: bool) -> AsyncIterator[str]:
    """Reachable, and its token known."""
    context = client_context(settings.provider_ca_file) if settings.provider_ca_file else True
    async with aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(ssl=context),
        timeout=aiohttp.ClientTimeout(total=SECONDS),
        trust_env=False,
    ) as session:
        for login in settings.provider_logins():
            variable = settings.variable(login.url_field)
            address = f"{login.url.rstrip('/')}{login.probe}"
            headers = {"Authorization": f"Bearer {login.secret}"}
            try:
                async with session.get(address, headers=headers, allow_redirects=False) as answer:
                    status, server = answer.status, answer.headers.get("Server")
            except (aiohttp.ClientError, OSError, TimeoutError) as error:
                yield unreachable(variable, "BANKSIDE_PROVIDER_CA_FILE", error)
                continue
            simulator = login.simulator
            if production and simulator is not None and simulator.has_answered(server):
                yield simulator_as_provider(variable, simulator)
            if status == 401:
                secret = settings.variable(login.secret_field)
                yield f"set {secret}: the provider does not know the one that it has."
