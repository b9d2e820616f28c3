"""The engine between a real broker, a real database and receivers of the test's own, by a clock that the test moves."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

import asyncpg
from sqlalchemy import text
from uuid_utils import uuid7

from libs.contracts.customer_views import PersonEventData
from libs.contracts.customers import CustomerStatus
from libs.contracts.events import EVENT_TYPES, Event, new_event
from libs.messaging.broker import Broker
from libs.messaging.event_publisher import EventPublisher
from libs.messaging.session import Session
from libs.persistence.availability import is_away
from libs.persistence.engine import Database
from libs.persistence.sealing import Keyring
from libs.runtime.process import Process
from services.webhook_dispatcher.adapters.allowance import Allowance
from services.webhook_dispatcher.adapters.callback_urls import CallbackPolicy
from services.webhook_dispatcher.adapters.poster import Timeouts, open_poster
from services.webhook_dispatcher.engine.rules import DeliverySettings
from services.webhook_dispatcher.engine.run import run_engine
from services.webhook_dispatcher.ports import Poster
from services.webhook_dispatcher.repository import claims
from services.webhook_dispatcher.repository.partitions import Partitions
from services.webhook_dispatcher.signing_secrets import new_secret, seal_secret
from tests.integration.webhooks.engine.receiver import Receiver
from tests.support.infrastructure import Environment
from tests.support.pace import pace
from tests.support.waiting import eventually

WAIT_SECONDS = 20.0
POST_SECONDS = 250.0
"""What hangs ends when the test lets it go, however long the test waits for other things before."""
LEASE_SECONDS = 300.0
"""Longer than a post, as in production."""
SERVICE = "webhook_dispatcher"


class MovedClock:
    """Goes as time does, from the moment to which it was moved, until it stands still."""

    def __init__(self) -> None:
        self._ahead = timedelta()
        self._stands_at: datetime | None = None

    def __call__(self) -> datetime:
        return (self._stands_at or datetime.now(UTC)) + self._ahead

    def stand_still(self) -> None:
        """From now on only `advance` moves it: no retry or probe becomes due while a slow test waits."""
        self._stands_at = datetime.now(UTC)

    def advance(self, **time: float) -> None:
        self._ahead += timedelta(**time)


class EventsOfOnboarding(EventPublisher):
    """Publishes as onboarding on a connection of the administrator's, who may do so here."""

    async def attach(self, session: Session) -> None:
        session.user = "onboarding"
        await super().attach(session)


@dataclass
class Rig:
    database: Database
    environment: Environment
    keyring: Keyring
    receiver: Receiver
    clock: MovedClock = field(default_factory=MovedClock)
    secrets: dict[UUID, str] = field(default_factory=dict)
    wake: Callable[[], None] = lambda: None

    @property
    def amqp_url(self) -> str:
        """Of a virtual host that is emptied after each test that asks for it."""
        return self.environment.amqp_url

    async def subscribe(
        self,
        path: str,
        *,
        tenant: str = "t_1",
        customer_id: str | None = "c_1",
        event_type: str = "person",
        status: str = "active",
        url: str | None = None,
    ) -> UUID:
        """A subscription whose callback is `path` of the receiver."""
        subscription_id, secret = UUID(bytes=uuid7().bytes), new_secret()
        self.secrets[subscription_id] = secret
        async with self.database.transaction() as connection:
            await connection.execute(
                text(
                    "INSERT INTO subscription (id, tenant, customer_id, event_type, callback_url, description,"
                    " status, secret, created_at, updated_at)"
                    " VALUES (:id, :tenant, :customer_id, :event_type, :url, '', :status, :secret, :at, :at)"
                ),
                {
                    "id": subscription_id,
                    "tenant": tenant,
                    "customer_id": customer_id,
                    "event_type": event_type,
                    "url": url or self.receiver.url + path,
                    "status": status,
                    "secret": seal_secret(self.keyring, subscription_id, secret),
                    "at": self.clock(),
                },
            )
            await connection.execute(
                text("INSERT INTO endpoint (subscription_id) VALUES (:id)"), {"id": subscription_id}
            )
        return subscription_id

    async def query(self, sql: str, **values: Any) -> list[Any]:
        async with self.database.transaction() as connection:
            return list(await connection.execute(text(sql), values))

    async def change(self, sql: str, **values: Any) -> None:
        async with self.database.transaction() as connection:
            await connection.execute(text(sql), values)

    async def status(self, subscription_id: UUID) -> str:
        [row] = await self.query(
            "SELECT status FROM subscription WHERE id = :id", id=subscription_id
        )
        return str(row.status)

    async def endpoint(self, subscription_id: UUID) -> Any:
        [row] = await self.query(
            "SELECT * FROM endpoint WHERE subscription_id = :id", id=subscription_id
        )
        return row

    async def deliveries(self, subscription_id: UUID) -> list[Any]:
        """Those that are not over."""
        return await self.query(
            "SELECT * FROM delivery WHERE subscription_id = :id ORDER BY id", id=subscription_id
        )

    async def attempts(self, subscription_id: UUID) -> list[Any]:
        return await self.query(
            "SELECT * FROM attempt WHERE subscription_id = :id ORDER BY attempted_at, number",
            id=subscription_id,
        )

    @asynccontextmanager
    async def engine(
        self,
        settings: DeliverySettings | None = None,
        poster: Poster | None = None,
        *,
        post_seconds: float = POST_SECONDS,
        random: Callable[[], float] = lambda: 0.5,
    ) -> AsyncIterator[EventPublisher]:
        """One process' worth of it, and a publisher on its connection."""
        settings = settings or DeliverySettings(lease_seconds=LEASE_SECONDS)
        process, broker = Process(SERVICE), Broker(self.amqp_url, SERVICE)
        publisher = EventsOfOnboarding()
        broker.add(publisher)
        async with (
            open_poster(
                CallbackPolicy(Allowance.parse("127.0.0.1:*")),
                connections=settings.slots,
                timeouts=Timeouts(total=post_seconds),
                clock=self.clock,
            ) as real,
            broker.open(),
            run_engine(
                process,
                broker,
                self.database,
                poster or real,
                self.keyring,
                settings,
                clock=self.clock,
                random=random,
            ) as self.wake,
        ):
            await broker.start(wait_seconds=WAIT_SECONDS * pace())
            yield publisher

    async def waits_for_lock(self, *for_what: str) -> bool:
        """Whether a statement in this database waits for a lock of one of these kinds."""
        return bool(
            await self.query(
                "SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND wait_event = ANY(:for_what)"
                " AND datname = current_database()",
                for_what=list(for_what),
            )
        )

    @asynccontextmanager
    async def others_claim(self) -> AsyncIterator[asyncpg.Connection]:
        """A claim of another process, which is not ended while it stands idle: engines wait with theirs until it is
        over.
        """
        async with claims.claiming(self.database) as connection:
            await connection.execute("SET LOCAL idle_in_transaction_session_timeout = 0")
            yield connection

    async def has_waiting_claim(self) -> bool:
        """Whether an engine waits to claim until another process has."""
        return await self.waits_for_lock("advisory")

    async def take(self, subscription_id: UUID) -> None:
        """Claim the delivery of a subscription that is due longest, as another process does."""
        async with claims.claiming(self.database) as connection:
            await claims.take(
                *(connection, {subscription_id: 1}, {subscription_id: claims.EVER}, uuid4()),
                now=self.clock(),
                lease_seconds=30,
            )

    async def leases_end(self) -> None:
        """As if time passed for the database, by whose clock leases go. A server that was restarted has ended some of
        the connections of the pool.
        """

        async def ended() -> bool:
            try:
                await self.change(
                    "UPDATE delivery SET lease_until = clock_timestamp() WHERE claim IS NOT NULL"
                )
            except Exception as error:
                if is_away(error):
                    return False
                raise
            return True

        await eventually("leases have ended", ended)

    def later(self, **time: float) -> None:
        """Time passes, and the engine looks at what is due by now."""
        self.clock.advance(**time)
        self.wake()


def an_event(
    sequence: int = 1,
    *,
    kind: str = "person.updated",
    tenant: str = "t_1",
    customer_id: str = "c_1",
    resource: str = "p_1",
) -> Event:
    return new_event(
        EVENT_TYPES[kind],
        PersonEventData(
            customer_id=resource,
            first_name="Ada",
            last_name="Lovelace",
            status=CustomerStatus.APPROVED,
            business_customer_id=customer_id,
        ),
        tenant=tenant,
        customer_id=customer_id,
        resource_id=resource,
        sequence=sequence,
        at=datetime.now(UTC),
    )


async def claimed(rig: Rig, subscription_id: UUID, ids: list[UUID], claim: UUID) -> None:
    """Held deliveries that are in flight, in the table in this order."""
    await Partitions(rig.database).ensure("attempt", [datetime.now(UTC).date()])
    for delivery_id in ids:
        await rig.change(
            "INSERT INTO delivery (id, subscription_id, tenant, event_day, event_id, event_type, state, held_at,"
            " due_at, lease_until, claim, created_at) VALUES (:id, :subscription_id, 't_1', current_date,"
            " gen_random_uuid(), 'person.updated', 'held', now(), now(), now() + interval '30 s', :claim, now())",
            id=delivery_id,
            subscription_id=subscription_id,
            claim=claim,
        )
