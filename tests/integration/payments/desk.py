"""payments as processes between a real broker and database and a bank of the test's own, and a desk to work it from.

The test itself answers for onboarding: customers `c_1` and `c_2` of tenant `t_1`, and `c_3` of tenant `t_2`.
"""

from __future__ import annotations

import json
import time
import uuid
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import aio_pika
import aiohttp
import asyncpg

from deploy.local.ports import LOOPBACK
from libs.contracts import payments_operations as table
from libs.contracts.customers import Address
from libs.contracts.errors import NotFound, Unavailable
from libs.contracts.model import Command
from libs.contracts.onboarding_operations import (
    FIND_ACCOUNT_OWNER,
    FIND_CUSTOMER,
    FIND_EXTERNAL_ACCOUNT,
)
from libs.contracts.operation import Operation
from libs.contracts.ownership import (
    AccountOwner,
    CustomerOwner,
    ExternalAccountOwner,
    FindAccountOwner,
    FindCustomer,
    FindExternalAccount,
)
from libs.contracts.principal import Family, Principal
from libs.contracts.result import Result
from libs.contracts.table import operations_of
from libs.handling.queries import QueryHandler, run_queries
from libs.messaging.broker import Broker
from libs.messaging.service_client import ServiceClient
from libs.runtime.process import Process
from tests.integration.payments.office import Office
from tests.support.fake_core import Account, FakeCore, serving
from tests.support.ids import made_id
from tests.support.keys import sealer_of
from tests.support.pace import pace
from tests.support.waiting import eventually

WAIT_SECONDS = 25.0
C_1 = str(uuid.UUID(int=1))
C_2 = str(uuid.UUID(int=2))
C_3 = str(uuid.UUID(int=3))
TENANTS = {C_1: "t_1", C_2: "t_1", C_3: "t_2"}
A_FAULT = "a fault"
"""In place of an owner: when onboarding is asked who it is, something in it breaks."""


def customer(customer_id: str = C_1) -> Principal:
    tenant = TENANTS[customer_id]
    return Principal(tenant, "Tenant", Family.CUSTOMER, "sub_test", customer_id)


def wire(**changes: Any) -> Command:
    body = {
        "sending_account_id": "acc_1",
        "external_account_id": "ext_1",
        "amount": Decimal("10.00"),
        "purpose": "Invoice 2047",
    }
    return table.SEND_WIRE.command.model_validate({**body, **changes})


@dataclass
class Connections:
    """What desks have in common, one after the other: to open it anew would take longer than most tests do."""

    office: Office
    service_client: ServiceClient
    database: Any
    owned: dict[str, str] = field(default_factory=dict)
    """Accounts and linked external accounts by their ids, to the customer."""
    events: list[dict[str, Any]] = field(default_factory=list)
    """What was published since the desk was opened."""
    _onboarding: AsyncExitStack | None = None

    async def onboarding_up(self) -> None:
        if self._onboarding is None:
            answering = AsyncExitStack()
            await answering.enter_async_context(answering_for_onboarding(self.office, self.owned))
            self._onboarding = answering

    async def onboarding_down(self) -> None:
        """No process answers for onboarding."""
        if self._onboarding is not None:
            await self._onboarding.aclose()
            self._onboarding = None


@dataclass
class Desk:
    connections: Connections
    core: FakeCore
    http: aiohttp.ClientSession
    began: datetime
    _bank: AsyncExitStack = field(default_factory=AsyncExitStack)

    def __post_init__(self) -> None:
        self.office = self.connections.office
        self.service_client = self.connections.service_client
        self.database = self.connections.database
        self.owned = self.connections.owned
        self.events = self.connections.events
        self.onboarding_up = self.connections.onboarding_up
        self.onboarding_down = self.connections.onboarding_down

    async def bank_up(self) -> None:
        await self._bank.enter_async_context(serving(self.core, self.office.core_port))

    async def bank_down(self) -> None:
        await self._bank.aclose()

    async def send(
        self,
        command: Command | None = None,
        principal: Principal | None = None,
        *,
        operation: Operation = table.SEND_WIRE,
        wait_seconds: float | None = None,
        command_id: str | None = None,
    ) -> Any:
        """The data of the reply. Raises what the reply carries."""
        envelope = self.service_client.envelope(
            operation,
            principal or customer(),
            command or wire(),
            command_id=command_id or str(made_id()),
            request_id=str(uuid.uuid4()),
            deadline=time.time() + (wait_seconds or WAIT_SECONDS * pace()),
        )
        reply = await self.service_client.send_command(envelope)
        if reply.error is not None:
            raise reply.error.to_error()
        return self.service_client.open_result(operation, reply)["data"]

    async def cancel(
        self, transaction_id: str, principal: Principal | None = None, **options: Any
    ) -> Any:
        command = table.CANCEL_WIRE.command.model_validate({"transaction_id": transaction_id})
        return await self.send(command, principal, operation=table.CANCEL_WIRE, **options)

    async def decide(
        self, operation: Operation, transaction_id: str, principal: Principal, **options: Any
    ) -> Any:
        """Approve or decline a wire that waits for it."""
        asked: dict[str, Any] = {"transaction_id": transaction_id}
        if operation is table.DECLINE_WIRE:
            asked["reason"] = "Paid already"
        command = operation.command.model_validate(asked)
        return await self.send(command, principal, operation=operation, **options)

    async def get(self, transaction_id: str, principal: Principal | None = None) -> Any:
        command = table.GET_WIRE.command.model_validate({"transaction_id": transaction_id})
        return (
            await self.service_client.query(
                table.GET_WIRE,
                principal or customer(),
                command,
                time.time() + WAIT_SECONDS * pace(),
            )
        )["data"]

    async def page(self, principal: Principal | None = None, **asked: Any) -> Any:
        command = table.LIST_WIRES.command.model_validate(asked)
        return await self.service_client.query(
            table.LIST_WIRES, principal or customer(), command, time.time() + WAIT_SECONDS * pace()
        )

    async def has_state(self, transaction_id: str, state: str, seconds: float = 20) -> Any:
        async def there() -> Any:
            try:
                found = await self.get(transaction_id)
            except (NotFound, Unavailable):
                return None
            return found if found["state"] == state else None

        return await eventually(f"{transaction_id} is {state}", there, seconds)

    async def rows(self, statement: str, *values: Any) -> list[dict[str, Any]]:
        """Rows of payments' own schema."""
        return [dict(row) for row in await self.database.fetch(statement, *values)]

    async def states(self) -> Counter[str]:
        counted = await self.rows("SELECT state, count(*) AS n FROM wires GROUP BY state")
        return Counter({row["state"]: row["n"] for row in counted})

    async def expire_leases(self) -> None:
        """As if the lease of a process that died had run out, which takes 10 s."""
        await self._change_commands("lease_until = clock_timestamp()", "lease_until IS NOT NULL")

    async def due_now(self) -> None:
        """As if the pauses between drives were over."""
        await self._change_commands(
            "due_at = clock_timestamp()", "finished_at IS NULL AND due_at > clock_timestamp()"
        )

    async def rests(self, command_id: str) -> bool:
        """Whether the command is not driven, nor for the next hour: no drive goes on by what was true before."""
        rested = await self.database.execute(
            "UPDATE inbox SET due_at = clock_timestamp() + interval '1 hour'"
            " WHERE command_id = $1 AND lease IS NULL AND finished_at IS NULL",
            uuid.UUID(command_id),
        )
        return bool(rested == "UPDATE 1")

    async def _change_commands(self, change: str, where: str) -> None:
        """One after another: a process that renews many leases meanwhile must not end in a deadlock."""
        for row in await self.rows(f"SELECT command_id FROM inbox WHERE {where}"):
            await self.database.execute(
                f"UPDATE inbox SET {change} WHERE command_id = $1 AND {where}", row["command_id"]
            )

    async def until(
        self, what: str, condition: Callable[[], Awaitable[Any]], seconds: float = 20
    ) -> Any:
        return await eventually(what, condition, seconds)

    async def until_quiet(self, seconds: float = 30, *, without_pauses: bool = False) -> None:
        """Until every command is final and every event is relayed.

        Args:
            without_pauses: nothing is waited for between two drives of a command.
        """

        async def quiet() -> bool:
            if without_pauses:
                await self.due_now()
            (left,) = await self.rows(
                "SELECT (SELECT count(*) FROM inbox WHERE finished_at IS NULL) AS commands,"
                " (SELECT count(*) FROM outbox) AS events"
            )
            assert left == {"commands": 0, "events": 0}, left
            return True

        await eventually("nothing is left to do", quiet, seconds)

    async def is_circuit_open(self) -> bool:
        """Whether the first replica leaves the bank alone for a while, since it was away in the test before."""
        return 'bankside_provider_circuit_open{provider="core"} 1.0' in await self._metric_lines()

    async def _metric_lines(self) -> list[str]:
        url = f"http://{LOOPBACK}:{self.office.replicas[0].admin_port}/metrics"
        async with self.http.get(url) as response:
            return [line for line in (await response.text()).splitlines() if line[0] != "#"]

    async def metrics(self) -> dict[str, float]:
        """Of the first replica, once they were measured."""

        async def measured() -> dict[str, float] | None:
            lines = await self._metric_lines()
            found = {name: float(value) for name, _, value in (x.rpartition(" ") for x in lines)}
            return found if 'bankside_wires{state="submitted"}' in found else None

        return await eventually("wires are counted", measured)

    def types_of(self, transaction_id: str) -> list[str]:
        """The types of the wire's events in the order of their sequence, each event once."""
        seen = {e["id"]: e for e in self.events if e["data"]["transaction_id"] == transaction_id}
        ordered = sorted(seen.values(), key=lambda event: event["sequence"])
        assert [e["sequence"] for e in ordered] == list(range(1, len(ordered) + 1))
        return [event["type"].removeprefix("wire.") for event in ordered]

    def data_of(self, transaction_id: str, kind: str) -> list[Any]:
        """Of the wire's events of a type, each event once."""
        seen = {e["id"]: e for e in self.events if e["type"] == f"wire.{kind}"}
        data = (event["data"] for event in seen.values())
        return [each for each in data if each["transaction_id"] == transaction_id]

    async def has_told(self, transaction_ids: Iterable[str], *expected: str) -> None:
        """As `has_events`, of many."""
        for transaction_id in transaction_ids:
            await self.has_events(transaction_id, *expected)

    async def has_events(self, transaction_id: str, *expected: str) -> None:
        async def published() -> bool:
            assert self.types_of(transaction_id) == [*expected], self.types_of(transaction_id)
            return True

        await eventually("its events", published)

    def fund(self, account_id: str, amount: Decimal, customer_id: str = C_1) -> Account:
        self.owned[account_id] = customer_id
        self.core.accounts[account_id] = Account(available=amount)
        return self.core.accounts[account_id]


def _onboarding(owned: dict[str, str]) -> dict[str, QueryHandler]:
    """What onboarding would answer, scoped as its rows say."""

    def owner_of(principal: Principal, resource_id: str) -> str:
        owner = owned.get(resource_id)
        if owner == A_FAULT:
            raise RuntimeError(resource_id)
        if owner is None or TENANTS[owner] != principal.tenant:
            raise NotFound
        if principal.customer_id not in (None, owner):
            raise NotFound
        return owner

    async def account(principal: Principal, command: FindAccountOwner, _: float) -> Result:
        owner = owner_of(principal, command.account_id)
        return Result(AccountOwner(account_id=command.account_id, customer_id=owner))

    async def external(principal: Principal, command: FindExternalAccount, _: float) -> Result:
        found = command.external_account_id
        owner = owner_of(principal, found)
        return Result(
            ExternalAccountOwner(
                external_account_id=found,
                customer_id=owner,
                name_on_account="Tidewater Goods LLC",
                address_on_account=Address(
                    street_1="1 Main Street", city="Norfolk", state="VA", zip_code="23510"
                ),
                linked_at=datetime(2020, 1, 1, tzinfo=UTC),
            )
        )

    async def of_any_tenant(_: Principal, command: FindCustomer, __: float) -> Result:
        tenant = TENANTS[command.customer_id]
        return Result(
            CustomerOwner(
                customer_id=command.customer_id, tenant=tenant, business_name="Acme", dba=None
            )
        )

    async def nothing(_: Principal, __: Command, ___: float) -> Result:
        raise NotFound

    rows = (row.name for row in operations_of("onboarding") if row.is_query)
    return dict.fromkeys(rows, nothing) | {
        FIND_ACCOUNT_OWNER.name: account,
        FIND_EXTERNAL_ACCOUNT.name: external,
        FIND_CUSTOMER.name: of_any_tenant,
    }


@asynccontextmanager
async def answering_for_onboarding(office: Office, owned: dict[str, str]) -> AsyncIterator[None]:
    sealer = sealer_of(office.environment.secrets, "onboarding")
    broker = Broker(office.environment.amqp_urls["onboarding"], "onboarding")
    async with (
        broker.open(),
        run_queries(Process("onboarding"), sealer, broker, _onboarding(owned)),
    ):
        await broker.start(wait_seconds=WAIT_SECONDS * pace())
        yield


@asynccontextmanager
async def open_connections(office: Office) -> AsyncIterator[Connections]:
    async with AsyncExitStack() as opened:
        environment = office.environment
        broker = Broker(environment.amqp_urls["gateway"], "desk")
        service_client = ServiceClient(sealer_of(environment.secrets, "gateway"))
        broker.add(service_client)
        await opened.enter_async_context(broker.open())
        await broker.start(wait_seconds=WAIT_SECONDS * pace())
        database = await asyncpg.connect(environment.database_urls["payments_owner"])
        opened.push_async_callback(database.close)
        connections = Connections(office, service_client, database)
        opened.push_async_callback(connections.onboarding_down)
        connection = await opened.enter_async_context(await aio_pika.connect(environment.amqp_url))
        channel = await connection.channel()
        exchange = await channel.declare_exchange("bankside.events", "topic", durable=True)
        queue = await channel.declare_queue(exclusive=True)
        await queue.bind(exchange, "#")

        async def collect(message: aio_pika.abc.AbstractIncomingMessage) -> None:
            connections.events.append(json.loads(message.body))

        await queue.consume(collect, no_ack=True)
        yield connections


@asynccontextmanager
async def open_desk(connections: Connections) -> AsyncIterator[Desk]:
    async with AsyncExitStack() as opened:
        tokens = connections.office.environment.secrets.provider_tokens
        core = FakeCore(tokens["payments"]["core"], linked={"ext_1"})
        http = await opened.enter_async_context(aiohttp.ClientSession())
        began = await connections.database.fetchval("SELECT clock_timestamp()")
        desk = Desk(connections, core, http, began)
        desk.events.clear()
        desk.owned.clear()
        desk.owned["ext_1"] = C_1
        desk.fund("acc_1", Decimal("1000000.00"))
        await desk.onboarding_up()
        await desk.bank_up()
        opened.push_async_callback(desk.bank_down)
        opened.callback(core.heal)
        yield desk
