"""Banks behind ledger_read's two ports, and what a test makes happen at them beside the ports."""

from __future__ import annotations

import itertools
import uuid
from collections import defaultdict
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, date, datetime, time
from decimal import Decimal
from typing import Any, Protocol

import aiohttp
from aiohttp import web
from uuid_utils import uuid7

from deploy.local.ports import LOOPBACK
from libs.providers.sandbox.http import ProviderClient
from services.ledger_read.adapters.sandbox.financial import SandboxFinancial
from services.ledger_read.adapters.sandbox.ledger import SandboxLedger
from services.ledger_read.adapters.sandbox.postings import SandboxPostings
from services.ledger_read.ports import Financial, Ledger, PostingSource
from tests.integration.provider_sandbox.bank import Bank as SandboxBank
from tests.integration.provider_sandbox.bank import external_account
from tests.support.ports import free_ports
from tests.support.stack import Stack
from tests.unit.ledger_read import answers
from tests.unit.ledger_read.conftest import Bank, account_answer


@dataclass(frozen=True)
class Opened:
    customer_id: str
    account_id: str


class LedgerBank(Protocol):
    @property
    def has_reserves(self) -> bool:
        """Whether the provider has reserve accounts, and calculates settlements with them."""
        ...

    @property
    def posts_in_the_past(self) -> bool:
        """Whether a test can post to an earlier day. Otherwise `post` posts now."""
        ...

    @property
    def financial(self) -> Financial: ...

    @property
    def ledger(self) -> Ledger: ...

    async def open_account(self) -> Opened:
        """The first account of a new business, open and empty."""
        ...

    async def link(self, opened: Opened, number: str) -> None:
        """Link an external account, which becomes the primary one."""
        ...

    async def post(self, opened: Opened, amount: Decimal, day: date) -> None:
        """Post to the account at noon UTC of a day in the past; a negative amount is a debit."""
        ...

    async def request_ach(self, opened: Opened, amount: Decimal) -> str:
        """The reference of a new ACH request."""
        ...

    async def generate_statement(self, opened: Opened, year: int, month: int) -> None: ...

    async def sweep(self, opened: Opened, day: date) -> None:
        """Load what the account holds now at program banks, as of a business day."""
        ...

    async def open_reserve(self, opened: Opened) -> None: ...

    async def calculate(self, opened: Opened, day: date, amount: Decimal) -> None:
        """Calculate a settlement with the account's reserve, as of a business day."""
        ...


class SandboxLedgerBank:
    has_reserves = posts_in_the_past = True

    def __init__(self, stack: Stack, bank: SandboxBank, session: aiohttp.ClientSession) -> None:
        token = stack.environment.secrets.provider_tokens["ledger_read"]["financial"]
        client = ProviderClient("financial", f"{stack.sandbox_url}/financial", token, session)
        self.financial: Financial = SandboxFinancial(client)
        self.ledger: Ledger = SandboxLedger(client)
        self.postings: PostingSource = SandboxPostings(client)
        self._bank = bank
        self._core_ids: dict[str, str] = {}

    async def open_account(self) -> Opened:
        opened = await self._bank.open_account()
        self._core_ids[opened.customer_id] = opened.core_id
        return Opened(opened.customer_id, opened.account_id)

    async def link(self, opened: Opened, number: str) -> None:
        core_id = self._core_ids[opened.customer_id]
        await self._bank.done("/core/external-accounts", external_account(core_id, number))

    async def post(self, opened: Opened, amount: Decimal, day: date) -> None:
        direction = "debit" if amount < 0 else "credit"
        await self._simulate(
            "transactions",
            account_id=opened.account_id,
            amount=str(abs(amount)),
            direction=direction,
            settled_at=_noon(day),
        )

    async def request_ach(self, opened: Opened, amount: Decimal) -> str:
        made = await self._simulate("ach", account_id=opened.account_id, amount=str(amount))
        return str(made["reference_id"])

    async def generate_statement(self, opened: Opened, year: int, month: int) -> None:
        await self._simulate("statements", account_id=opened.account_id, year=year, month=month)

    async def sweep(self, opened: Opened, day: date) -> None:
        await self._simulate(
            "deposit-locations", account_id=opened.account_id, load_date=day.isoformat()
        )

    async def open_reserve(self, opened: Opened) -> None:
        await self._simulate(f"accounts/{opened.account_id}/reserve")

    async def calculate(self, opened: Opened, day: date, amount: Decimal) -> None:
        await self._simulate(
            "settlement-calculations",
            account_id=opened.account_id,
            settlement_date=day.isoformat(),
            amount=str(amount),
        )

    async def _simulate(self, path: str, **body: Any) -> Any:
        done = await self._bank.simulate(path, body)
        assert done.status == 200, done
        return done.body


class FakeLedgerBank:
    """The financial provider of ledger_read's unit tests over HTTP, with rows that it filters and pages."""

    has_reserves = posts_in_the_past = True

    def __init__(self, bank: Bank, url: str, session: aiohttp.ClientSession) -> None:
        client = ProviderClient("financial", url, "token", session)
        self.financial: Financial = SandboxFinancial(client)
        self.ledger: Ledger = SandboxLedger(client)
        self._bank = bank
        self._rows: defaultdict[tuple[str, str], list[answers.Row]] = defaultdict(list)
        self._links: defaultdict[str, list[answers.Row]] = defaultdict(list)
        self._reserves: set[str] = set()
        self._numbers = itertools.count(1)
        bank.lists["/external-accounts"] = self._external_accounts

    async def open_account(self) -> Opened:
        opened = Opened(str(uuid.uuid4()), f"acc_{uuid7().hex}")  # ids that grow, as the sandbox's
        self._bank.add(account_answer(opened.account_id, customer_id=opened.customer_id))
        self._set_balance(opened)
        path = f"/accounts/{opened.account_id}"
        for name, answer in (
            ("transactions", self._transactions),
            ("ach", self._ach_requests),
            ("statements", self._statements),
            ("deposit-locations", self._deposit_locations),
            ("settlement-calculations", self._calculations),
        ):
            self._bank.lists[f"{path}/{name}"] = lambda query, a=answer: a(  # type: ignore[misc]
                opened.account_id, query
            )
        return opened

    async def link(self, opened: Opened, number: str) -> None:
        links = self._links[opened.customer_id]
        for link in links:
            link["primary"] = False
        known = {
            "external_account_id": f"ext_{uuid.uuid4().hex}",
            "account_number": number,
            "routing_number": "021000021",
        }
        links.insert(
            0, {**known, "bank_name": "First Bank", "name_on_account": "Acme", "primary": True}
        )
        self._bank.answers[f"/accounts/{opened.account_id}/external-account"] = (
            200,
            {**known, "title": "Acme", "institution_name": "First Bank"},
        )

    async def post(self, opened: Opened, amount: Decimal, day: date) -> None:
        row = answers.transaction(
            next(self._numbers),
            account_id=opened.account_id,
            amount=str(abs(amount)),
            direction="debit" if amount < 0 else "credit",
            type="withdrawal" if amount < 0 else "deposit",
            settled_at=_noon(day),
        )
        self._add(opened, "transactions", row, "settled_at")
        self._set_balance(opened)

    async def request_ach(self, opened: Opened, amount: Decimal) -> str:
        row = answers.ach_request(
            next(self._numbers),
            originating_account_id=opened.account_id,
            amount=str(amount),
            status="pending",
            return_code=None,
            return_description=None,
        )
        self._add(opened, "ach", row, "reference_id")
        return str(row["reference_id"])

    async def generate_statement(self, opened: Opened, year: int, month: int) -> None:
        row = answers.statement(
            statement_id=str(uuid.uuid4()),
            account_id=opened.account_id,
            start_date=f"{year}-{month:02}-01",
            end_date=f"{year}-{month:02}-28",
            year=year,
            month=month,
        )
        self._add(opened, "statements", row, "start_date")

    async def sweep(self, opened: Opened, day: date) -> None:
        row = answers.location(1001, balance=str(self._total(opened)))
        self._rows[opened.account_id, f"locations of {day.isoformat()}"] = [row]
        self._add(opened, "loads", {"load_date": day.isoformat()}, "load_date")

    async def open_reserve(self, opened: Opened) -> None:
        self._reserves.add(opened.account_id)

    async def calculate(self, opened: Opened, day: date, amount: Decimal) -> None:
        row = answers.calculation(settlement_date=day.isoformat(), amount=str(amount))
        self._add(opened, "calculations", row, "settlement_date")

    def _add(self, opened: Opened, kind: str, row: answers.Row, order: str) -> None:
        rows = self._rows[opened.account_id, kind]
        rows.append(row)
        rows.sort(key=lambda each: str(each[order]), reverse=True)

    def _total(self, opened: Opened) -> Decimal:
        rows = self._rows[opened.account_id, "transactions"]
        signs = {"credit": 1, "debit": -1}
        return sum((Decimal(r["amount"]) * signs[r["direction"]] for r in rows), Decimal("0.00"))

    def _set_balance(self, opened: Opened) -> None:
        total = str(self._total(opened))
        body = {
            "account_id": opened.account_id,
            "account_number": "123456789012",
            "available": total,
            "held": "0.00",
            "total": total,
            "currency": "USD",
            "as_of": datetime.now(UTC).isoformat(),
        }
        self._bank.answers[f"/accounts/{opened.account_id}/balance"] = (200, body)

    def _external_accounts(self, query: Mapping[str, str]) -> Any:
        rows = self._links[query["customer_id"]]
        return answers.cursored("external_accounts", rows)(query)

    def _transactions(self, account_id: str, query: Mapping[str, str]) -> Any:
        rows = [
            row
            for row in self._rows[account_id, "transactions"]
            if query.get("transaction_id") in (None, row["transaction_id"])
            and query.get("start", "") <= row["settled_at"][:10] <= query.get("end", "9")
        ]
        return answers.numbered("transactions", rows)(query)

    def _ach_requests(self, account_id: str, query: Mapping[str, str]) -> Any:
        wanted = query.get("reference_id")
        rows = self._rows[account_id, "ach"]
        rows = [row for row in rows if wanted in (None, row["reference_id"])]
        return answers.cursored("ach_requests", rows)(query)

    def _statements(self, account_id: str, query: Mapping[str, str]) -> Any:
        rows = [
            row
            for row in self._rows[account_id, "statements"]
            if query.get("statement_id") in (None, row["statement_id"])
            and row["end_date"] >= query.get("start", "")
            and row["start_date"] <= query.get("end", "9")
        ]
        return answers.cursored("statements", rows)(query)

    def _deposit_locations(self, account_id: str, query: Mapping[str, str]) -> Any:
        loads = [load["load_date"] for load in self._rows[account_id, "loads"]]
        wanted = query.get("load_date")
        day = next((load for load in loads if wanted in (None, load)), None)
        rows = self._rows[account_id, f"locations of {day}"] if day else []
        page = answers.numbered("locations", rows, account_id=account_id, as_of_date=day)
        return page(query)

    def _calculations(self, account_id: str, query: Mapping[str, str]) -> Any:
        number = "987654321098" if account_id in self._reserves else None
        rows = [
            row
            for row in self._rows[account_id, "calculations"]
            if row["settlement_date"] >= query["from"]
        ]
        page = answers.cursored(
            "calculations", rows, account_id=account_id, reserve_account_number=number
        )
        return page(query)


@asynccontextmanager
async def fake_ledger() -> AsyncIterator[tuple[Bank, str]]:
    """A fake financial provider that listens, and its URL."""
    bank = Bank()
    application = web.Application()
    application.router.add_get("/{path:.*}", bank.handle)
    runner = web.AppRunner(application, access_log=None, shutdown_timeout=0.5)
    await runner.setup()
    (port,) = free_ports(1)
    try:
        await web.TCPSite(runner, LOOPBACK, port).start()
        yield bank, f"http://{LOOPBACK}:{port}"
    finally:
        await runner.cleanup()


def _noon(day: date) -> str:
    return datetime.combine(day, time(12), UTC).isoformat().replace("+00:00", "Z")
