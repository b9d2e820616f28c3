"""The handlers of commands with a bank whose answers a test decides."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any
from uuid import UUID, uuid4

from sqlalchemy import text

from libs.contracts import onboarding_operations as table
from libs.contracts.customers import CustomerStatus as Status
from libs.contracts.exact_json import decode
from libs.contracts.principal import Principal
from libs.contracts.reconciliation import RecordedCustomer
from libs.contracts.result import Result
from libs.handling.commands import CommandHandler
from libs.persistence import inbox
from libs.persistence.engine import Database
from libs.providers.writing import Capabilities
from services.onboarding.abandoning import why_not_abandoned
from services.onboarding.app import command_handlers
from services.onboarding.events import Events
from services.onboarding.handlers.parts import Parts
from services.onboarding.ids import DECISION
from services.onboarding.ordering import ordering_key
from services.onboarding.repository.reconciliation import CustomerReader
from services.onboarding.repository.store import Store
from tests.integration.onboarding import driving
from tests.integration.onboarding.desk import partner
from tests.integration.onboarding.shelf import new_store, open_shelf
from tests.support.fake_providers import FakeProviders
from tests.support.infrastructure import Environment

ONBOARDING = table.ONBOARD_CUSTOMER.name
A_MOMENT = Capabilities(keys_remembered_seconds=1.0, longest_transit_seconds=1.0)
"""Shorter than a send may take: nothing is sent twice."""

_DECISIONS = text(
    "SELECT body FROM inbox WHERE operation = 'onboarding.apply_decision' AND finished_at IS NULL"
    " AND convert_from(body, 'UTF8')::jsonb ->> 'customer_id' = :customer"
)


@dataclass
class Handling:
    """The handlers with a bank whose answers the test decides, on a tenant of their own."""

    database: Database
    store: Store
    bank: FakeProviders
    handlers: Mapping[str, CommandHandler]
    principal: Principal

    async def accept(self, operation: str) -> inbox.Leased:
        return await driving.accept(self.database, operation, self.principal)

    async def drive(self, leased: inbox.Leased, command: Any) -> Result:
        return await driving.drive(self.database, self.handlers, leased, self.principal, command)

    async def order(self, leased: inbox.Leased) -> None:
        """As where the command is recorded: those of one customer are driven one at a time."""
        key = ordering_key(self.principal.tenant, await self.customer_id())
        async with self.database.transaction() as connection:
            ordered = text("UPDATE inbox SET ordering_key = :key WHERE command_id = :id")
            await connection.execute(ordered, {"key": key, "id": leased.command_id})

    async def why_not_abandoned(self, leased: inbox.Leased) -> str | None:
        async with self.database.transaction() as connection:
            return await why_not_abandoned(connection, leased.operation, leased.command_id)

    async def held(self) -> RecordedCustomer:
        """The customer as reconciliation is told of it."""
        customers = CustomerReader(self.store.vault)
        async with self.database.snapshot() as connection:
            [held] = await customers.by_ids(connection, [await self.customer_id()])
        return held

    async def decide(self, identity_id: str, status: Status, version: int = 2) -> None:
        verification = {"identity_id": identity_id, "status": status.value, "version": version}
        body = {"customer_id": str(await self.customer_id()), "verification": verification}
        await self.drive(await self.accept(DECISION), body)

    async def something_changed(self) -> None:
        """The feed tells of a change, and not of which."""
        body = {"customer_id": str(await self.customer_id()), "verification": None}
        await self.drive(await self.accept(DECISION), body)

    async def drive_decisions(self) -> None:
        """Those of the customer that are recorded and not final."""
        async with self.database.transaction() as connection:
            rows = await connection.execute(_DECISIONS, {"customer": str(await self.customer_id())})
            bodies = [decode(body) for body in rows.scalars()]
        for body in bodies:
            await self.drive(await self.accept(DECISION), body)

    async def value(self, statement: str, **values: Any) -> Any:
        """The only value of a statement's answer."""
        async with self.database.transaction() as connection:
            rows = await connection.execute(
                text(statement), {"tenant": self.principal.tenant, **values}
            )
            return rows.scalar_one()

    async def customer_id(self) -> UUID:
        found: UUID = await self.value("SELECT customer_id FROM customers WHERE tenant = :tenant")
        return found

    async def status(self) -> str:
        return str(await self.value("SELECT status FROM customers WHERE tenant = :tenant"))

    async def identity_of(self, kind: str) -> str:
        column = {
            "business": "SELECT identity_id FROM customers WHERE tenant = :tenant",
            "person": "SELECT identity_id FROM persons WHERE tenant = :tenant",
        }
        return str(await self.value(column[kind]))

    async def events(self) -> list[str]:
        async with self.database.transaction() as connection:
            rows = await connection.execute(
                text("SELECT type FROM outbox WHERE customer_id = :id ORDER BY type"),
                {"id": str(await self.customer_id())},
            )
            return list(rows.scalars())


@asynccontextmanager
async def open_handling(environment: Environment) -> AsyncIterator[Handling]:
    store, bank = new_store(), FakeProviders()
    async with open_shelf(environment) as database:
        handlers = command_handlers(Parts(bank, bank, store, Events(store)))
        yield Handling(database, store, bank, handlers, partner(f"t{uuid4().hex[:8]}"))
