"""The dispatcher between a real broker and database, asked as the gateway asks it.

Each desk has a tenant of its own with two customers, and another tenant beside it. Callback URLs lead to a port where
nobody listens, and a second attempt comes hours later: what is delivered stays pending.
"""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import asyncpg
from uuid_utils import uuid7

from libs.contracts import webhook_operations as table
from libs.contracts.events import Event
from libs.contracts.operation import Operation
from libs.contracts.principal import Family, Principal
from libs.contracts.webhook_operations import FamilyPair
from libs.messaging.broker import Broker
from libs.messaging.service_client import ServiceClient
from libs.persistence.engine import Database, open_database
from services.webhook_dispatcher.repository import partitions, recording
from tests.support.infrastructure import Environment
from tests.support.keys import sealer_of
from tests.support.pace import pace
from tests.support.stack import Stack

WAIT_SECONDS = 25.0
NOWHERE = "http://127.0.0.1:9/hook"
OPERATOR = Principal(
    tenant="",
    tenant_name="",
    family=Family.OPERATOR,
    subscription_key="sub_ada",
    operator="ada",
    address="203.0.113.7",
    request_id="req-1",
)


def _principal(tenant: str, customer_id: str | None = None) -> Principal:
    family = Family.CUSTOMER if customer_id else Family.PARTNER
    return Principal(tenant, "Tenant", family, "sub_test", customer_id)


@dataclass(frozen=True)
class Connections:
    """What desks have in common, one after the other: to open it anew would take longer than most tests do."""

    service_client: ServiceClient
    database: Any
    recorder: Database


@dataclass
class Desk:
    stack: Stack
    service_client: ServiceClient
    database: Any
    recorder: Database
    tenant: str = field(default_factory=lambda: f"t_{uuid.uuid4()}")
    customers: tuple[str, str] = field(
        default_factory=lambda: (str(uuid.uuid4()), str(uuid.uuid4()))
    )
    wait_seconds: float = WAIT_SECONDS
    """For a reply, on a quiet machine."""

    @property
    def partner(self) -> Principal:
        return _principal(self.tenant)

    @property
    def customer(self) -> Principal:
        return _principal(self.tenant, self.customers[0])

    @property
    def other_customer(self) -> Principal:
        return _principal(self.tenant, self.customers[1])

    @property
    def stranger(self) -> Principal:
        """The partner of another tenant."""
        return _principal(f"{self.tenant}-other")

    async def ask(
        self, pair: FamilyPair, who: Principal, *, command_id: str | None = None, **values: Any
    ) -> Any:
        """The data of the reply; of a command when it is final. Raises what the reply carries."""
        return (await self.payload(pair, who, command_id=command_id, **values))["data"]

    async def payload(
        self, pair: FamilyPair, who: Principal, *, command_id: str | None = None, **values: Any
    ) -> Any:
        return await self._sent(pair.of(who.family), who, command_id, values)

    async def operate(self, row: Operation, **values: Any) -> Any:
        """The data of the answer to an operator. Raises what the reply carries."""
        return (await self._sent(row, OPERATOR, None, values))["data"]

    async def _sent(
        self, operation: Operation, who: Principal, command_id: str | None, values: dict[str, Any]
    ) -> Any:
        envelope = self.service_client.envelope(
            operation,
            who,
            operation.command.model_validate(values),
            command_id=command_id or str(uuid.uuid4()),
            request_id=str(uuid.uuid4()),
            deadline=time.time() + self.wait_seconds * pace(),
        )
        send = (
            self.service_client.send_query
            if operation.is_query
            else self.service_client.send_command
        )
        reply = await send(envelope)
        if reply.error is not None:
            raise reply.error.to_error()
        return self.service_client.open_result(operation, reply)

    async def subscribe(self, who: Principal | None = None, event_types: str = "*") -> str:
        """The id of a new subscription."""
        made = await self.ask(
            table.CREATE_SUBSCRIPTION,
            who or self.customer,
            event_types=event_types,
            callback_url=NOWHERE,
        )
        return str(made["subscription_id"])

    async def record(
        self,
        event_type: str = "transaction.created",
        customer_id: str | None = None,
        *,
        body: bytes | None = None,
        at: datetime | None = None,
    ) -> str:
        """The id of an event of the tenant that has just been recorded; `at` is the time within it."""
        event_id = event_id_at(at or datetime.now(UTC))
        event = Event(
            event_id,
            event_type,
            self.tenant,
            self.customers[0] if customer_id is None else customer_id,
            str(uuid.uuid4()),
            1,
            body or _body(event_id, event_type),
        )
        arrival = recording.arrival_of(event)
        assert arrival is not None
        async with self.recorder.transaction() as connection:
            await recording.record_batch(connection, [arrival], datetime.now(UTC))
        return event_id

    async def delivery_of(self, event_id: str, subscription_id: str) -> str:
        """The id of the newest delivery of the event that is not over."""
        (row,) = await self.rows(
            "SELECT id FROM delivery WHERE event_id = $1 AND subscription_id = $2 ORDER BY id DESC LIMIT 1",
            uuid.UUID(event_id.removeprefix("evt_")),
            uuid.UUID(subscription_id),
        )
        return str(row["id"])

    async def conclude(
        self,
        delivery_id: str,
        concluded: str = "failed",
        *,
        at: datetime | None = None,
        began: datetime | None = None,
    ) -> None:
        """As if an attempt had ended the delivery; as soon as it began, unless that is given."""
        at = at or datetime.now(UTC)
        began = began or at
        status, error = (200, None) if concluded == "succeeded" else (500, "It answered 500.")
        await self.database.execute(
            """
            WITH over AS (DELETE FROM delivery WHERE id = $1 RETURNING *)
            INSERT INTO attempt (day, delivery_id, number, subscription_id, event_day, event_id, event_type,
                delivery_created_at, concluded, concluded_at, attempted_at, duration_ms, response_status, error,
                response_body)
            SELECT $2, id, attempts_made + 1, subscription_id, event_day, event_id, event_type, created_at, $3, $4, $5,
                12, $6, $7, 'what it said' FROM over
            """,
            *(uuid.UUID(delivery_id), began.date(), concluded, at, began, status, error),
        )

    async def move_beyond_retention(self, *event_ids: str) -> None:
        """As if the events had been recorded 31 days ago, together with one whose delivery is pending."""
        ids = [uuid.UUID(event_id.removeprefix("evt_")) for event_id in event_ids]
        day = datetime.now(UTC).date() - timedelta(days=31)
        async with self.database.transaction():
            await self.database.execute("SELECT make_day_partition('event', $1)", day)
            for statement in (
                "UPDATE event SET day = $1 WHERE id = ANY($2)",
                "UPDATE delivery SET event_day = $1 WHERE event_id = ANY($2)",
                "UPDATE attempt SET event_day = $1 WHERE event_id = ANY($2)",
            ):
                await self.database.execute(statement, day, ids)

    async def hold(self, subscription_id: str) -> None:
        """As the engine would what is pending of a subscription that becomes unavailable."""
        await self.database.execute(
            "UPDATE delivery SET state = 'held', held_at = clock_timestamp()"
            " WHERE subscription_id = $1 AND state = 'pending'",
            uuid.UUID(subscription_id),
        )

    async def set_status(self, subscription_id: str, status: str) -> None:
        """As the engine would."""
        await self.database.execute(
            "UPDATE subscription SET status = $2, unavailable_at = CASE WHEN $2 = 'unavailable' THEN clock_timestamp()"
            " ELSE unavailable_at END WHERE id = $1",
            *(uuid.UUID(subscription_id), status),
        )

    async def deliveries(self, subscription_id: str, **asked: Any) -> Any:
        who = asked.pop("who", self.customer)
        return await self.ask(table.LIST_DELIVERIES, who, subscription_id=subscription_id, **asked)

    async def rows(self, statement: str, *values: Any) -> list[dict[str, Any]]:
        """Rows of the dispatcher's own schema."""
        return [dict(row) for row in await self.database.fetch(statement, *values)]


@asynccontextmanager
async def open_connections(stack: Stack) -> AsyncIterator[Connections]:
    environment = stack.environment
    broker = Broker(environment.amqp_urls["gateway"], "desk")
    service_client = ServiceClient(sealer_of(environment.secrets, "gateway"))
    broker.add(service_client)
    async with broker.open():
        await broker.start(wait_seconds=WAIT_SECONDS * pace())
        database = await asyncpg.connect(environment.database_urls["webhook_dispatcher_owner"])
        recorder = open_database(
            environment.database_urls["webhook_dispatcher"], "desk", pool_size=4
        )
        try:
            yield Connections(service_client, database, recorder)
        finally:
            await database.close()
            await recorder.close()


async def make_partitions(environment: Environment) -> None:
    """Of the days that these tests put events and attempts into."""
    database = open_database(environment.database_urls["webhook_dispatcher"], "desk", pool_size=1)
    today = datetime.now(UTC).date()
    days = [today + timedelta(days=n) for n in range(-31, 2)]
    async with database.transaction() as connection:
        await partitions.make(connection, "event", days)
        await partitions.make(connection, "attempt", days)
    await database.close()


def event_id_at(at: datetime) -> str:
    """`evt_` and a UUIDv7 of that time."""
    milliseconds = int(at.timestamp() * 1000)
    return f"evt_{uuid.UUID(int=milliseconds << 80 | uuid7().int & (1 << 80) - 1)}"


def _body(event_id: str, event_type: str) -> bytes:
    body = {
        "id": event_id,
        "type": event_type,
        "timestamp": "2026-01-31T12:00:00.000000Z",
        "api_version": "0.1.0",
        "sequence": 1,
        "data": {"object": event_type.partition(".")[0]},
    }
    return json.dumps(body).encode()
