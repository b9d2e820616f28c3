"""A service that ends at a crash point in the process of the test, and goes on in another."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import aiohttp
from sqlalchemy import text

from libs.contracts.errors import BanksideError
from libs.contracts.operation import Operation
from libs.contracts.principal import Principal
from libs.contracts.result import Result
from libs.handling.commands import CommandHandler
from libs.persistence import inbox
from libs.persistence.engine import Database
from libs.runtime import crash
from tests.integration.onboarding import driving
from tests.support.stack import Stack


class Stopped(BaseException):
    """Stands for the death of the process."""


@dataclass
class Bench:
    """The handlers at work, and what came of it."""

    stack: Stack
    database: Database
    handlers: Mapping[str, CommandHandler]
    http: aiohttp.ClientSession

    async def accept(self, operation: str, principal: Principal) -> inbox.Leased:
        return await driving.accept(self.database, operation, principal, driving.any_order())

    async def drive(self, leased: inbox.Leased, principal: Principal, command: Any) -> Result:
        return await driving.drive_to_end(self.database, self.handlers, leased, principal, command)

    async def resumed(self, leased: inbox.Leased) -> inbox.Leased:
        """The command as the next process gets it when the lease has run out."""
        async with self.database.transaction() as connection:
            await connection.execute(
                text("UPDATE inbox SET lease_until = clock_timestamp() WHERE command_id = :id"),
                {"id": leased.command_id},
            )
        return await driving.claim_again(self.database, leased)

    async def carry_out(
        self, operation: Operation | str, command: Any, principal: Principal
    ) -> Result:
        """Without any crash."""
        name = operation if isinstance(operation, str) else operation.name
        return await self.drive(await self.accept(name, principal), principal, command)

    async def crash_and_resume(
        self,
        points: Iterable[str],
        operation: Operation | str,
        command: Any,
        principal: Principal,
    ) -> Result:
        """Carry the command out, stopped once at each of these points, which it reaches in this order."""
        name = operation if isinstance(operation, str) else operation.name
        leased = await self.accept(name, principal)
        for point in points:
            crash.arm(point)
            try:
                await self.drive(leased, principal, command)
            except Stopped:
                leased = await self.resumed(leased)
            except BanksideError as error:
                raise AssertionError(f"{point} was not reached") from error
            else:
                raise AssertionError(f"{point} was not reached")
            finally:
                crash.arm("")
        return await self.drive(leased, principal, command)

    async def truth(self, what: str, customer_id: str) -> list[dict[str, Any]]:
        url = f"{self.stack.sandbox_url}/truth/{what}?customer_id={customer_id}"
        async with self.http.get(url) as response:
            rows: list[dict[str, Any]] = await response.json()
        return rows

    async def bank(self, method: str, path: str, **body: Any) -> None:
        url = self.stack.sandbox_url + path
        async with self.http.request(method, url, json=body or None) as response:
            assert response.status == 200, await response.text()

    async def event_types(self, customer_id: str) -> list[str]:
        async with self.database.transaction() as connection:
            rows = await connection.execute(
                text("SELECT type FROM outbox WHERE customer_id = :id ORDER BY type"),
                {"id": customer_id},
            )
            return list(rows.scalars())

    async def customers_of(self, tenant: str) -> list[tuple[str, str]]:
        """(id, status) of each."""
        async with self.database.transaction() as connection:
            rows = await connection.execute(
                text("SELECT customer_id, status FROM customers WHERE tenant = :tenant"),
                {"tenant": tenant},
            )
            return [(str(row.customer_id), row.status) for row in rows]
