"""What the sandbox is told to do, by `/simulate`."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date
from decimal import Decimal
from typing import Literal

import aiohttp

from libs.providers.simulation import BankRequests, Report


def open_bank(
    session: aiohttp.ClientSession, bank_url: Callable[[str], str], report: Report
) -> SandboxBank:
    return SandboxBank(BankRequests(session, bank_url("sandbox"), "The provider sandbox", report))


class SandboxBank:
    name = "the sandbox"

    def __init__(self, requests: BankRequests) -> None:
        self._requests = requests

    async def deposit(self, account_id: str, amount: Decimal, counterparty: str) -> None:
        body = {"account_id": account_id, "amount": amount, "counterparty_name": counterparty}
        await self._requests.post("/simulate/deposits", body)

    async def move(
        self,
        account_id: str,
        amount: Decimal,
        direction: Literal["credit", "debit"],
        counterparty: str,
    ) -> None:
        body = {
            "account_id": account_id,
            "amount": amount,
            "direction": direction,
            "counterparty_name": counterparty,
        }
        await self._requests.post("/simulate/transactions", body)

    async def make_statement(self, account_id: str, month: date) -> None:
        body = {"account_id": account_id, "year": month.year, "month": month.month}
        await self._requests.post("/simulate/statements", body)

    async def sweep(self, account_id: str) -> None:
        await self._requests.post("/simulate/deposit-locations", {"account_id": account_id})
