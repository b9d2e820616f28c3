"""Onboarding's handlers in the test's own process, with both providers at the fake of Increase."""

from __future__ import annotations

import json
import os
from collections.abc import AsyncIterator, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NoReturn
from uuid import UUID, uuid4

import pytest
import pytest_asyncio
from sqlalchemy import text

from libs.contracts.errors import BanksideError, OutcomePending
from libs.contracts.operation import Operation
from libs.contracts.principal import Principal
from libs.contracts.result import Result
from libs.handling.commands import CommandHandler
from libs.persistence import inbox
from libs.persistence.engine import Database
from libs.providers.feed_entries import FeedCursor
from libs.providers.increase.capabilities import WRITES
from libs.providers.increase.client import IncreaseClient
from libs.providers.sessions import open_session
from libs.runtime import crash
from services.onboarding.adapters.increase.core import IncreaseCoreBanking
from services.onboarding.adapters.increase.feeds import IdentityFeed
from services.onboarding.adapters.increase.identity import IncreaseIdentityProvider
from services.onboarding.app import command_handlers
from services.onboarding.events import Events
from services.onboarding.handlers.feeds import prepare_identity
from services.onboarding.handlers.parts import Parts
from services.onboarding.ids import DECISION
from services.onboarding.repository.store import Store
from tests.integration.onboarding import driving
from tests.integration.onboarding.crashing import Stopped
from tests.integration.onboarding.desk import (
    partner,
)
from tests.integration.onboarding.shelf import new_store, open_shelf
from tests.support.fake_providers import FakeProviders
from tests.support.increase_bank.faults import FaultKind, FaultRule
from tests.support.increase_bank.server import RunningBank, running_bank
from tests.support.infrastructure import Environment

KEY = "a-key-that-may-all"
DRIVES = 6
"""After so many a command whose every provider fails once has come to its end."""


@dataclass
class Bench:
    running: RunningBank
    database: Database
    client: IncreaseClient
    identity: IncreaseIdentityProvider
    store: Store
    handlers: Mapping[str, CommandHandler]
    principal: Principal

    def with_core_elsewhere(self) -> FakeProviders:
        """From now on core banking is another provider's."""
        elsewhere = FakeProviders()
        parts = Parts(self.identity, elsewhere, self.store, Events(self.store))
        self.handlers = command_handlers(parts)
        return elsewhere

    def fault(self, operation: str, kind: FaultKind, times: int = 1) -> None:
        self.running.bank.faults.put(FaultRule(operation=operation, kind=kind, times=times))

    def truth(self, kind: str) -> list[dict[str, Any]]:
        rows = self.running.bank.store.rows(
            "SELECT body FROM object WHERE kind = ? ORDER BY seq", (kind,)
        )
        return [json.loads(row[0]) for row in rows]

    def set_entity_status(self, status: str) -> None:
        """Of the one entity that there is."""
        (entity,) = self.truth("entity")
        store = self.running.bank.store
        with store.writing():
            store.save(entity | {"status": status})

    async def rows(self, statement: str) -> list[Any]:
        async with self.database.transaction() as connection:
            found = await connection.execute(text(statement), {"tenant": self.principal.tenant})
            return list(found)

    async def status(self) -> str:
        ((status,),) = await self.rows("SELECT status FROM customers WHERE tenant = :tenant")
        return str(status)

    async def events(self) -> list[str]:
        rows = await self.rows(
            "SELECT o.type FROM outbox o JOIN customers c ON c.customer_id::text = o.customer_id"
            " WHERE c.tenant = :tenant ORDER BY o.type"
        )
        return [row.type for row in rows]

    async def accept(self, operation: str) -> inbox.Leased:
        return await driving.accept(self.database, operation, self.principal, driving.any_order())

    async def drive(self, leased: inbox.Leased, command: Any) -> Result:
        return await driving.drive_to_end(
            self.database, self.handlers, leased, self.principal, command
        )

    async def resumed(self, leased: inbox.Leased) -> inbox.Leased:
        """As the next process gets it, when no send before it can arrive any more."""
        await self._execute(
            "UPDATE inbox SET lease_until = clock_timestamp() WHERE command_id = :id",
            leased.command_id,
        )
        await self._execute(
            "UPDATE saga_steps SET last_sent_at = last_sent_at - interval '2 minutes',"
            " first_sent_at = first_sent_at - interval '2 minutes' WHERE command_id = :id",
            leased.command_id,
        )
        return await driving.claim_again(self.database, leased)

    async def carry_out(self, operation: Operation | str, command: Any) -> Result:
        name = operation if isinstance(operation, str) else operation.name
        return await self.drive(await self.accept(name), command)

    async def crash_and_resume(
        self, points: Iterable[str], operation: Operation, command: Any
    ) -> Result:
        leased = await self.accept(operation.name)
        for point in points:
            crash.arm(point)
            try:
                await self.drive(leased, command)
            except Stopped:
                leased = await self.resumed(leased)
            except BanksideError as error:
                raise AssertionError(f"{point} was not reached") from error
            else:
                raise AssertionError(f"{point} was not reached")
            finally:
                crash.arm("")
        return await self.drive(leased, command)

    async def until_final(self, operation: Operation, command: Any) -> Result:
        """Driven again as long as the outcome is pending."""
        leased = await self.accept(operation.name)
        for _ in range(DRIVES):
            try:
                return await self.drive(leased, command)
            except OutcomePending:
                leased = await self.resumed(leased)
        raise AssertionError(f"{operation.name} comes to no end")

    async def follow(self, after: FeedCursor) -> FeedCursor:
        """Apply the entries of the identity feed; where it goes on."""
        entries = await IdentityFeed(self.client).fetch(after, 100)
        record = await prepare_identity(entries)
        async with self.database.transaction() as connection:
            await record(connection)
        for row in await self.rows(
            "SELECT command_id, body FROM inbox WHERE finished_at IS NULL"
            " AND operation = 'onboarding.apply_decision' AND ordering_key LIKE :tenant || '/%'"
        ):
            await self.carry_out(DECISION, json.loads(row.body))
            await self._execute(
                "UPDATE inbox SET finished_at = clock_timestamp() WHERE command_id = :id",
                row.command_id,
            )
        return FeedCursor(entries[-1].position, entries[-1].provider_cursor) if entries else after

    async def _execute(self, statement: str, command_id: UUID) -> None:
        async with self.database.transaction() as connection:
            await connection.execute(text(statement), {"id": command_id})


@pytest_asyncio.fixture
async def bench(
    environment: Environment, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[Bench]:
    def stop(*_: object) -> NoReturn:
        raise Stopped

    monkeypatch.setattr(crash, "os", SimpleNamespace(kill=stop, getpid=os.getpid))
    store = new_store()
    async with (
        open_shelf(environment) as database,
        running_bank(tmp_path, {KEY: "everything"}) as running,
        open_session(8) as session,
    ):
        client = IncreaseClient("core", running.url, KEY, session)
        identity = IncreaseIdentityProvider(client, WRITES)
        core = IncreaseCoreBanking(client, WRITES, is_identity=True, program_id=None)
        handlers = command_handlers(Parts(identity, core, store, Events(store)))
        yield Bench(
            running, database, client, identity, store, handlers, partner(f"t{uuid4().hex[:8]}")
        )
        assert not running.bank.violations
