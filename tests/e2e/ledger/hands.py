"""An account, its owner's two ways to it, and what the bank is made to do with it."""

from __future__ import annotations

import contextlib
import re
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any
from urllib.parse import urlencode

from deploy.local.ports import LOOPBACK
from tests.support.api import Answer, Api
from tests.support.bank_at_increase import CONDUCT, BankAtIncrease
from tests.support.live import ACCOUNTS, Live
from tests.support.waiting import eventually

PATHS = {
    "statements": "/partner/reseller/accounts/statements",
    "ach": "/partner/reseller/ach",
    "transactions": "/customer/accounts/transactions",
    "deposit-locations": "/customer/accounts/deposit-locations",
    "settlement-calculations": "/customer/accounts/settlement-calculations",
}
NEEDED = {"settlement-calculations": {"token_type": "rrc", "settlement_date": "2025-03-03"}}
"""What a request cannot be without."""


def target(what: str, account_id: str, /, **query: Any) -> str:
    path = f"{PATHS[what]}/{account_id}"
    return f"{path}?{urlencode(query)}" if query else path


@dataclass(frozen=True)
class Account:
    live: Live
    account_id: str
    number: str
    customer_id: str

    async def owner(self, what: str) -> Api:
        """Whoever may read this: the partner, or the customer with a key of its own."""
        if PATHS[what].startswith("/customer"):
            return await self.live.of_customer(self.customer_id)
        return self.live.partner

    async def read(
        self, what: str, headers: dict[str, str] | None = None, /, **query: Any
    ) -> Answer:
        """As its owner; `start` and `end` stand for the days of a period."""
        for short in ("start", "end"):
            if short in query:
                query[f"{short}_date"] = query.pop(short)
        caller = await self.owner(what)
        return await caller.call("GET", target(what, self.account_id, **query), headers=headers)

    async def ids(self, **query: Any) -> list[str]:
        """Of the transactions that are found, in their order."""
        answer = await self.read("transactions", **query)
        return [row["transaction_id"] for row in answer.data]

    async def balance(self) -> dict[str, Decimal]:
        """available, held, total"""
        found = (await self.live.partner.get(f"{ACCOUNTS}/balance/{self.account_id}")).data
        return {
            name: Decimal(found[f"{name}_balance"]["amount"])
            for name in ("available", "held", "total")
        }

    async def post(
        self,
        amount: str = "1.00",
        direction: str = "credit",
        at: datetime | None = None,
        **more: Any,
    ) -> str:
        """A transaction at the bank; its id."""
        if at is not None:
            more["settled_at"] = at.astimezone(UTC).isoformat()
        body = {"account_id": self.account_id, "amount": amount, "direction": direction, **more}
        body.setdefault("counterparty_name", "Somebody")
        return str((await self.live.bank.simulate("transactions", **body))["transaction_id"])

    async def ach(self, amount: str, *steps: str) -> str:
        """An ACH request that goes through these steps (`return:R01` with its code); its reference."""
        made = await self.live.bank.simulate("ach", account_id=self.account_id, amount=amount)
        for step in steps:
            name, _, code = step.partition(":")
            more: dict[str, Any] = {"return_code": code} if code else {}
            await self.live.bank.simulate(f"ach/{made['reference_id']}/{name}", **more)
        return str(made["reference_id"])


async def new_account(live: Live, api: Api | None = None) -> Account:
    business = (await live.onboarded(api=api))["business"]
    names = ("account_id", "account_number", "customer_id")
    return Account(live, *(business[name] for name in names))


@contextlib.asynccontextmanager
async def bank_with(live: Live, **settings: int) -> AsyncIterator[None]:
    """The bank with other settings meanwhile, by the end of their names: `page_limit`, `wire_seconds`, …"""
    if isinstance(live.bank, BankAtIncrease):
        await live.bank.conduct(**settings)
        undo = {name: CONDUCT[name] for name in settings}
    else:
        await _restart_bank(live, settings)
    try:
        yield
    finally:
        if isinstance(live.bank, BankAtIncrease):
            await live.bank.conduct(**undo)
        else:
            await _restart_bank(live, {})


async def _restart_bank(live: Live, settings: Mapping[str, int]) -> None:
    """Restart the sandbox, and wait until nobody leaves it alone any more."""

    async def is_asked() -> bool:
        for service in ("onboarding", "ledger_read"):
            port = live.stack.services[service].admin_port
            async with live.session.get(f"http://{LOOPBACK}:{port}/metrics") as response:
                metrics = await response.text()
            circuits = re.findall(
                r"^bankside_provider_circuit_open{.*} (.*)$", metrics, re.MULTILINE
            )
            assert circuits, service
            assert all(float(is_open) == 0 for is_open in circuits), service
        return True

    changes = {f"BANKSIDE_SANDBOX_{name.upper()}": str(value) for name, value in settings.items()}
    await live.stack.restart("provider_sandbox", **changes)
    await eventually("the restarted sandbox is asked again", is_asked)
