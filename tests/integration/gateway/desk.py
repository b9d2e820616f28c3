"""The gateway as a process of its own, a desk to work it from, and services behind it that are the test itself."""

from __future__ import annotations

import asyncio
import json
import secrets
import time
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any, NoReturn

import aiohttp
from sqlalchemy import text

from deploy.local.ports import LOOPBACK
from deploy.local.services import SERVICES
from libs.contracts.accounts import Balance, Money
from libs.contracts.principal import Family, Role, Scope
from libs.contracts.table import FAMILY_SCOPES, operations_of
from libs.handling.acceptance import Arriving
from libs.handling.commands import CommandHandler, run_commands
from libs.handling.driving import Driver
from libs.handling.queries import QueryHandler, run_queries
from libs.messaging.broker import Broker
from libs.messaging.request_deadlines import RequestDeadlines
from libs.messaging.service_client import ServiceClient
from libs.persistence.engine import Database, open_database
from libs.persistence.sealing import Keyring
from libs.runtime.probes import http_ready
from libs.runtime.process import Process
from services.gateway import repository
from services.gateway.credentials import secret_context
from tests.support.api import (
    Answer,
    Api,
    Interface,
    Key,
    operator_interface,
    public_interface,
    signed_headers,
)
from tests.support.infrastructure import Environment
from tests.support.keys import sealer_of, storage_of
from tests.support.launching import Launch, forked
from tests.support.operators import make_operator
from tests.support.pace import pace
from tests.support.stack import Stack

GATEWAY = tuple(service for service in SERVICES if service.name == "gateway")
WAIT_SECONDS = 20.0
POLL_SECONDS = 0.02
POLLS_MORE_RARELY = 0.05
"""As a part of the time waited so far, as in `waiting.eventually`."""


async def until(condition: Callable[[], Awaitable[Any]], seconds: float = WAIT_SECONDS) -> Any:
    """The first true answer of `condition`. Fails when there is none in time."""
    began = time.monotonic()
    async with asyncio.timeout(seconds * pace()):
        while not (answer := await condition()):
            waited = time.monotonic() - began
            await asyncio.sleep(max(POLL_SECONDS, POLLS_MORE_RARELY * waited))
    return answer


async def make_key(
    database: Database,
    keyring: Keyring,
    *,
    family: Family = Family.PARTNER,
    scopes: frozenset[Scope] | None = None,
    tenant: str | None = None,
    customer_id: uuid.UUID | None = None,
    per_minute: int = 1_000_000,
    writes_per_minute: int | None = None,
    requires_idempotency_key: bool = False,
    expires_at: datetime | None = None,
    allowed_networks: Sequence[str] = (),
) -> Key:
    """A new key, of a tenant of its own unless told otherwise."""
    tenant = tenant or f"tenant-{secrets.token_hex(4)}"
    key = Key(f"sub_{secrets.token_hex(12)}", secrets.token_urlsafe(32), tenant)
    if family is Family.CUSTOMER:
        customer_id = customer_id or uuid.uuid4()
    async with database.transaction() as connection:
        await repository.ensure_tenant(connection, tenant, tenant.title())
        await repository.add_credential(
            connection,
            repository.NewCredential(
                subscription_key=key.subscription_key,
                tenant=tenant,
                family=family,
                customer_id=customer_id,
                scopes=FAMILY_SCOPES[family] if scopes is None else scopes,
                allowed_networks=allowed_networks,
                secret=keyring.seal(key.secret, secret_context(key.subscription_key)),
                reads_per_minute=per_minute,
                writes_per_minute=writes_per_minute or per_minute,
                wires_per_minute=per_minute,
                requires_idempotency_key=requires_idempotency_key,
                expires_at=expires_at,
            ),
        )
    return key


@dataclass
class Desk:
    """A running gateway, its database, and a session to call it."""

    stack: Stack
    database: Database
    keyring: Keyring
    session: aiohttp.ClientSession
    interface: Interface
    base_url: str
    environment: Environment
    operator_interface: Interface

    async def operator(self, role: str = Role.ADMIN) -> Api:
        """A new operator at the operators' listener."""
        key = await make_operator(self.database, self.keyring, role)
        return self.at_operators(key)

    def at_operators(self, key: Key | None = None) -> Api:
        return Api(self.session, self.stack.operator_url, self.operator_interface, key)

    async def key(self, **options: Any) -> Key:
        return await make_key(self.database, self.keyring, **options)

    def api(self, key: Key | None = None) -> Api:
        return Api(self.session, self.base_url, self.interface, key)

    async def new_api(self, **options: Any) -> Api:
        return self.api(await self.key(**options))

    async def send(
        self, headers: Mapping[str, str], target: str = "/partner/reseller/accounts"
    ) -> Answer:
        return await self.api().send("GET", target, b"", headers)

    async def raw(self, request: bytes, *, seconds: float = 20.0) -> RawAnswer:
        """Send bytes on a connection of their own; the first answer to them."""
        port = int(self.base_url.rpartition(":")[2])
        async with asyncio.timeout(seconds * pace()):
            reader, writer = await asyncio.open_connection(LOOPBACK, port)
            try:
                writer.write(request)
                await writer.drain()
                return await _read_answer(reader)
            finally:
                writer.transport.abort()  # with what the gateway has not read of it

    async def execute(self, statement: str, **values: Any) -> Sequence[Any]:
        async with self.database.transaction() as connection:
            rows = await connection.execute(text(statement), values)
            return rows.all() if rows.returns_rows else []


@dataclass(frozen=True)
class RawAnswer:
    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def code(self) -> str:
        return str(json.loads(self.body)["code"])


async def _read_answer(reader: asyncio.StreamReader) -> RawAnswer:
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
    headers = {
        k.strip().lower(): v.strip()
        for k, _, v in (line.partition(":") for line in head[1:] if line)
    }
    body = await reader.readexactly(int(headers.get("content-length", 0)))
    return RawAnswer(int(head[0].split()[1]), headers, body)


def raw_request(
    method: str,
    target: str,
    headers: Mapping[str, str] | Sequence[tuple[str, str]],
    body: bytes = b"",
) -> bytes:
    """A request's bytes, exactly with these headers and a Host."""
    pairs = headers.items() if isinstance(headers, Mapping) else headers
    head = "".join(f"{name}: {value}\r\n" for name, value in pairs)
    return f"{method} {target} HTTP/1.1\r\nHost: gateway\r\n{head}\r\n".encode("latin-1") + body


def signed_request(key: Key, method: str, target: str, body: bytes, **headers: str) -> bytes:
    """A signed request's bytes; `headers` with `_` for `-`."""
    sent = signed_headers(key, method, target, body)
    sent |= {"Content-Type": "application/json", "Content-Length": str(len(body))}
    sent |= {name.replace("_", "-"): value for name, value in headers.items()}
    return raw_request(method, target, sent, body)


@asynccontextmanager
async def gateway_process(
    environment: Environment, folder: Path, launch: Launch = forked, /, **settings: str
) -> AsyncIterator[Stack]:
    """A gateway that is ready, every process of it, with these settings besides the usual ones."""
    stack = Stack(environment, folder, GATEWAY, launch, **settings)
    gateway = stack.services["gateway"]
    try:
        await stack.start()
        for number in range(1, int(settings.get("BANKSIDE_GATEWAY_PROCESSES", "1"))):
            ready = http_ready(LOOPBACK, gateway.admin_port + number)

            async def is_ready(check: Callable[[], Awaitable[bool]] = ready) -> bool:
                try:
                    return await check()
                except OSError:
                    return False

            await until(is_ready)
        yield stack
    finally:
        await stack.stop()


@asynccontextmanager
async def desk_at(stack: Stack) -> AsyncIterator[Desk]:
    """A desk at a gateway that runs."""
    environment = stack.environment
    database = open_database(environment.database_urls["gateway"], "tests")
    # A connection per request: with several processes on the port each may get any of them.
    connector = aiohttp.TCPConnector(limit=200, force_close=True)
    try:
        async with aiohttp.ClientSession(connector=connector) as session:
            yield Desk(
                stack,
                database,
                storage_of(environment.secrets, "gateway"),
                session,
                public_interface(),
                stack.base_url,
                environment,
                operator_interface(),
            )
    finally:
        await database.close()


@asynccontextmanager
async def running_gateway(
    environment: Environment, folder: Path, **settings: str
) -> AsyncIterator[Desk]:
    """A gateway of one test's own, and a desk at it."""
    async with gateway_process(environment, folder, **settings) as stack, desk_at(stack) as desk:
        yield desk


async def never_called(*_: Any) -> NoReturn:
    raise AssertionError("this handler was not expected to be called")


async def no_ordering(_connection: object, _arriving: Arriving) -> None:
    return None


@asynccontextmanager
async def answering(
    environment: Environment, service: str, handlers: Mapping[str, QueryHandler]
) -> AsyncIterator[Broker]:
    """Be the service for its queries: with these handlers by operation name."""
    sealer = sealer_of(environment.secrets, service)
    rows = {row.name: never_called for row in operations_of(service) if row.is_query}
    broker = Broker(environment.amqp_urls[service], service)
    async with broker.open(), run_queries(Process(service), sealer, broker, {**rows, **handlers}):
        await broker.start(wait_seconds=WAIT_SECONDS * pace())
        yield broker


@asynccontextmanager
async def carrying_out(
    environment: Environment,
    handlers: Mapping[str, CommandHandler],
    *,
    ordering: Any = no_ordering,
    database: Database | None = None,
    amqp_url: str | None = None,
    keep_for_ever: frozenset[str] = frozenset(),
) -> AsyncIterator[Driver]:
    """Be a replica of onboarding for its commands: with these handlers by operation name."""
    service = "onboarding"
    rows = {row.name: never_called for row in operations_of(service) if not row.is_query}
    broker = Broker(amqp_url or environment.amqp_urls[service], service)
    async with AsyncExitStack() as opened:
        if database is None:
            database = open_database(environment.database_urls[service], service)
            opened.push_async_callback(database.close)
        process = Process(service)
        await opened.enter_async_context(broker.open())
        driver = await opened.enter_async_context(
            run_commands(
                process,
                sealer_of(environment.secrets, service),
                broker,
                database,
                {**rows, **handlers},
                ordering,
                keep_for_ever,
            )
        )
        await broker.start(wait_seconds=WAIT_SECONDS * pace())
        yield driver


@asynccontextmanager
async def calling(
    environment: Environment,
    service: str = "gateway",
    deadlines: RequestDeadlines | None = None,
) -> AsyncIterator[ServiceClient]:
    """Ask services as the gateway does, or another service."""
    service_client = ServiceClient(sealer_of(environment.secrets, service), deadlines)
    broker = Broker(environment.amqp_urls[service], "tests")
    broker.add(service_client)
    async with broker.open():
        await broker.start(wait_seconds=WAIT_SECONDS * pace())
        yield service_client


def verdict(answer: Answer | RawAnswer) -> tuple[int, str]:
    return answer.status, answer.code


def a_balance(account_id: str, amount: Decimal) -> Balance:
    money = Money(amount=amount, currency="USD")
    return Balance.model_validate(
        {
            "account_id": account_id,
            "account_number": "7001",
            "available_balance": money,
            "held_balance": money,
            "total_balance": money,
            "system_timestamp": "2026-01-01T00:00:00.000001Z",
        }
    )
