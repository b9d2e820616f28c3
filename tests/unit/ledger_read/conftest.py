"""The adapters on a real HTTP server whose answers the test decides, and onboarding out of a table."""

from __future__ import annotations

import json
import time
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest
from aiohttp import web

from libs.contracts.model import Command
from libs.contracts.operation import Operation
from libs.contracts.principal import Principal
from libs.contracts.result import Result
from libs.providers.circuit import Circuit
from libs.providers.sandbox.http import ProviderClient
from libs.providers.sessions import open_session
from services.ledger_read.adapters.ownership import OnboardingOwnership
from services.ledger_read.adapters.sandbox.financial import SandboxFinancial
from services.ledger_read.adapters.sandbox.ledger import SandboxLedger
from services.ledger_read.handlers.accounts import AccountQueries
from services.ledger_read.handlers.ledger import LedgerQueries
from tests.support.pace import pace
from tests.unit.ledger_read.fakes import Onboarding


def account_answer(account_id: str, **changes: Any) -> dict[str, Any]:
    return {
        "account_id": account_id,
        "customer_id": "c_1",
        "account_number": "123456789012",
        "account_group": "deposit",
        "account_title": "Acme Operating",
        "name": "Acme Incorporated",
        "dba_name": None,
        "status": "open",
        "is_restricted": False,
        "interest_earned_year_to_date": "1234567890123456.78",
        "annual_percentage_yield_earned": "0.00",
        "closed_at": None,
        **changes,
    }


@dataclass
class Bank:
    """The financial provider: `answers` by path, else `(404, not_found)`; `lists` by path and out of the query.

    The list of accounts answers out of `accounts`.
    """

    url: str = ""
    answers: dict[str, tuple[int, Any]] = field(default_factory=dict)
    accounts: dict[str, dict[str, Any]] = field(default_factory=dict)
    lists: dict[str, Callable[[Mapping[str, str]], Any]] = field(default_factory=dict)
    seen: list[str] = field(default_factory=list)
    headers: list[Mapping[str, str]] = field(default_factory=list)

    def add(self, *answers: Mapping[str, Any]) -> None:
        for answer in answers:
            self.accounts[answer["account_id"]] = dict(answer)
            self.answers[f"/accounts/{answer['account_id']}"] = (200, answer)

    async def handle(self, request: web.Request) -> web.Response:
        self.seen.append(request.raw_path)
        self.headers.append(request.headers)
        if request.path in self.lists:
            return _json(200, self.lists[request.path](request.query))
        if request.path == "/accounts":
            asked = request.query.getall("account_id")
            assert len(asked) <= 100
            found = [self.accounts[key] for key in asked if key in self.accounts]
            return _json(200, {"accounts": found})
        if request.raw_path in self.answers:
            return _json(*self.answers[request.raw_path])
        unknown = (404, {"error": {"code": "not_found", "message": "No."}})
        return _json(*self.answers.get(request.path, unknown))


def _json(status: int, body: Any) -> web.Response:
    return web.Response(status=status, text=json.dumps(body), content_type="application/json")


@dataclass
class Service:
    """ledger_read's queries, from the handlers down to the wire."""

    bank: Bank
    onboarding: Onboarding
    client: ProviderClient
    handlers: Any

    async def ask(self, operation: Operation, principal: Principal, **command: Any) -> Any:
        """The payload's data."""
        return (await self.payload(operation, principal, **command))["data"]

    async def payload(
        self, operation: Operation, principal: Principal, **command: Any
    ) -> dict[str, Any]:
        request: Command = operation.command(**command)
        result: Result = await self.handlers[operation.name](
            principal, request, time.time() + 5 * pace()
        )
        return result.payload(operation)


@pytest.fixture
async def service() -> AsyncIterator[Service]:
    bank, onboarding = Bank(), Onboarding()
    application = web.Application()
    application.router.add_get("/{path:.*}", bank.handle)
    runner = web.AppRunner(application)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    bank.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
    async with open_session(10) as session:
        client = ProviderClient(
            "financial", bank.url, "token", session, circuit=Circuit(failures_to_open=100)
        )
        ownership = OnboardingOwnership(onboarding, patience_seconds=1, remembered=3)
        handlers = {
            **AccountQueries(ownership, SandboxFinancial(client)).by_operation(),
            **LedgerQueries(ownership, SandboxLedger(client)).by_operation(),
        }
        yield Service(bank, onboarding, client, handlers)
    await runner.cleanup()
