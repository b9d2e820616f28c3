"""Onboarding as a process between a real broker, a real database and the sandbox, and a desk to work it from."""

from __future__ import annotations

import asyncio
import itertools
import json
import random
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from typing import Any
from uuid import uuid4

import aio_pika
import aiohttp
import asyncpg

from deploy.local.services import SERVICES
from libs.contracts import onboarding_operations as table
from libs.contracts.customers import OnboardCustomer
from libs.contracts.model import Command
from libs.contracts.operation import Operation
from libs.contracts.principal import Family, Principal
from libs.messaging.service_client import ServiceClient
from tests.integration.gateway.desk import calling
from tests.support.pace import pace
from tests.support.stack import Stack

ONBOARDING_AND_BANK = tuple(s for s in SERVICES if s.name in ("provider_sandbox", "onboarding"))
WAIT_SECONDS = 25.0
POLL_SECONDS = 0.02
POLLS_MORE_RARELY = 0.05
"""As a part of the time waited so far, as in `waiting.eventually`."""

GOOD, DENIED, REVIEW, DOCUMENTS = "1111", "0001", "0002", "0003"


_beginnings = [
    f"{prefix}{middle:03}"
    for prefix in (12, 20, 35, 46)
    for middle in range(101, 900)
    if middle % 100 > 10
]
random.shuffle(_beginnings)
_next_beginning = itertools.cycle(_beginnings)


def tax_number(ending: str = GOOD) -> str:
    """Nine digits that are valid as EIN and as SSN, new each time."""
    return f"{next(_next_beginning)}{ending}"


def address(**changes: Any) -> dict[str, Any]:
    return {
        "street_1": "1 Main St",
        "city": "Albany",
        "state": "NY",
        "zip_code": "12207",
        **changes,
    }


def business(**changes: Any) -> dict[str, Any]:
    return {
        "business_name": "Acme Tools",
        "naics_code": "5415",
        "formation_state": "DE",
        "formation_date": "2015-03-01",
        "ein": tax_number(),
        "phone": "212-555-0123",
        "email": "office@acme-tools.com",
        "business_address": address(),
        **changes,
    }


def person(**changes: Any) -> dict[str, Any]:
    return {
        "first_name": "Ada",
        "last_name": "Byron",
        "date_of_birth": "1980-12-10",
        "home_address": address(),
        "tin": tax_number(),
        "email": "ada@acme-tools.com",
        "phone": "+12125550124",
        "ownership_percentage": 60,
        "controller": True,
        **changes,
    }


def bank_account(**changes: Any) -> dict[str, Any]:
    return {
        "bank_name": "First National",
        "name_on_account": "Acme Tools",
        "routing_number": "021000021",
        "account_number": str(random.randint(10**9, 10**10 - 1)),
        "address_on_account": address(),
        **changes,
    }


def application(
    persons: Iterable[dict[str, Any]] | None = None, **changes: dict[str, Any]
) -> OnboardCustomer:
    """`changes`: another business or external_bank_account."""
    return OnboardCustomer.model_validate(
        {
            "business": business(),
            "persons": [person()] if persons is None else list(persons),
            "external_bank_account": bank_account(),
            **changes,
        }
    )


def partner(tenant: str = "demo") -> Principal:
    return Principal(
        tenant=tenant,
        tenant_name=tenant.title(),
        family=Family.PARTNER,
        subscription_key="sub_test",
    )


@dataclass
class Desk:
    """What a test does to onboarding and to the bank, and what it sees."""

    stack: Stack
    service_client: ServiceClient
    http: aiohttp.ClientSession
    database: Any
    opened: AsyncExitStack
    until_delivered: Callable[[], Awaitable[None]]
    """Until every event that the broker has taken is in `events`."""
    others: dict[str, ServiceClient] = field(default_factory=dict)
    """Callers besides the gateway's, by service."""
    events: list[dict[str, Any]] = field(default_factory=list)

    async def send(
        self,
        operation: Operation,
        command: Command,
        principal: Principal | None = None,
        *,
        wait_seconds: float | None = None,
        command_id: str | None = None,
    ) -> Any:
        """The data of the reply. Raises what the reply carries.

        Args:
            wait_seconds: until the deadline; None: as long as anything is waited for.
        """
        if wait_seconds is None:
            wait_seconds = WAIT_SECONDS * pace()
        envelope = self.service_client.envelope(
            operation,
            principal or partner(),
            command,
            command_id=command_id or str(uuid4()),
            request_id=str(uuid4()),
            deadline=time.time() + wait_seconds,
        )
        reply = await self.service_client.send_command(envelope)
        if reply.error is not None:
            raise reply.error.to_error()
        return self.service_client.open_result(operation, reply)["data"]

    async def _client_for(self, operation: Operation) -> ServiceClient:
        """That of a service that may ask this."""
        sender = operation.senders[0]
        if sender == "gateway":
            return self.service_client
        if sender not in self.others:
            asking = calling(self.stack.environment, sender)
            self.others[sender] = await self.opened.enter_async_context(asking)
        return self.others[sender]

    async def ask(
        self, operation: Operation, command: Command, principal: Principal | None = None
    ) -> Any:
        """The payload of the reply to a query."""
        service_client = await self._client_for(operation)
        return await service_client.query(
            operation, principal or partner(), command, time.time() + WAIT_SECONDS * pace()
        )

    async def onboard(self, command: OnboardCustomer, **options: Any) -> Any:
        return await self.send(table.ONBOARD_CUSTOMER, command, **options)

    async def customer(self, customer_id: str, principal: Principal | None = None) -> Any:
        command = table.GET_CUSTOMER.command.model_validate({"customer_id": customer_id})
        return (await self.ask(table.GET_CUSTOMER, command, principal))["data"]

    async def bank(self, method: str, path: str, **body: Any) -> Any:
        """One request to the sandbox's endpoints for tests."""
        url = self.stack.sandbox_url + path
        async with self.http.request(method, url, json=body or None) as response:
            text = await response.text()
            assert response.status < 300, f"{method} {path}: {response.status} {text}"
            return json.loads(text) if text else None

    async def fault(self, api: str, operation: str, kind: str, **options: Any) -> None:
        await self.bank("PUT", "/faults", api=api, operation=operation, kind=kind, **options)

    async def no_faults(self) -> None:
        await self.bank("DELETE", "/faults")

    async def truth(self, what: str, customer_id: str) -> list[dict[str, Any]]:
        rows: list[dict[str, Any]] = await self.bank("GET", f"/truth/{what}")
        return [row for row in rows if row["customer_id"] == customer_id]

    async def rows(self, statement: str, *values: Any) -> list[dict[str, Any]]:
        """Rows of onboarding's own schema."""
        return [dict(row) for row in await self.database.fetch(statement, *values)]

    async def expire_leases(self) -> None:
        """As if the lease of a process that died had run out, which takes 10 s."""
        await self.database.execute(
            "UPDATE inbox SET lease_until = clock_timestamp() WHERE lease_until IS NOT NULL"
        )

    def types_of(self, customer_id: str) -> list[str]:
        """The types of the events of a customer and its parts, sorted."""
        return sorted(e["type"] for e in self.events if e["customer_id"] == customer_id)

    async def until_quiet(self) -> None:
        """Until every command is final and every event is relayed."""

        async def quiet() -> bool:
            (left,) = await self.rows(
                "SELECT (SELECT count(*) FROM inbox WHERE finished_at IS NULL) AS commands,"
                " (SELECT count(*) FROM outbox) AS events"
            )
            return left == {"commands": 0, "events": 0}

        await eventually(quiet)
        await self.until_delivered()


async def eventually(
    condition: Callable[[], Awaitable[Any]], timeout_seconds: float = WAIT_SECONDS
) -> Any:
    """The first true value of the condition.

    Args:
        timeout_seconds: on a quiet machine; see `pace`.
    """
    began = time.monotonic()
    while True:
        value = await condition()
        if value:
            return value
        waited = time.monotonic() - began
        assert waited < timeout_seconds * pace(), f"not within {waited:.0f} s"
        await asyncio.sleep(max(POLL_SECONDS, POLLS_MORE_RARELY * waited))


@asynccontextmanager
async def open_desk(stack: Stack) -> AsyncIterator[Desk]:
    """For one test after another: what a desk has opened would take longer than most of them do."""
    async with AsyncExitStack() as opened:
        amqp_url = stack.environment.amqp_url
        service_client = await opened.enter_async_context(calling(stack.environment))
        connection = await opened.enter_async_context(await aio_pika.connect(amqp_url))
        http = await opened.enter_async_context(aiohttp.ClientSession())
        database = await asyncpg.connect(stack.environment.database_urls["onboarding"])
        opened.push_async_callback(database.close)
        channel = await connection.channel()
        queue = await channel.declare_queue(exclusive=True)
        await queue.bind("bankside.events", "#")
        seen: set[str | None] = set()

        async def until_delivered() -> None:
            last = str(uuid4())
            message = aio_pika.Message(b"", message_id=last)
            await channel.default_exchange.publish(message, queue.name)

            async def is_delivered() -> bool:
                return last in seen

            await eventually(is_delivered)

        desk = Desk(stack, service_client, http, database, opened, until_delivered)

        async def collect(message: aio_pika.abc.AbstractIncomingMessage) -> None:
            if message.routing_key == queue.name:
                seen.add(message.message_id)
                return
            desk.events.append(
                {
                    **json.loads(message.body),
                    "raw": message.body.decode(),
                    "customer_id": message.headers["customer_id"],
                    "resource_id": message.headers["resource_id"],
                }
            )

        await queue.consume(collect, no_ack=True)
        yield desk
