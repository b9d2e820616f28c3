"""What Increase's fake is told to do: by the documented simulations, and the sweep of a day by its own request."""

from __future__ import annotations

import os
from collections.abc import Callable
from datetime import date
from decimal import Decimal
from typing import Literal
from urllib.parse import urlencode

import aiohttp

from libs.providers.increase.money import cents_of
from libs.providers.simulation import BankRequests, Report, SimulationFailed

KEY_SETTING = "BANKSIDE_INCREASE_FAKE_KEY"
CONTACT = "office@tidewater.example.com"


def open_bank(
    session: aiohttp.ClientSession, bank_url: Callable[[str], str], report: Report
) -> IncreaseBank:
    key = os.environ.get(KEY_SETTING)
    if not key:
        raise SimulationFailed(
            f"The bank is Increase, which can be told nothing here: `make up BANK=increase-fake`"
            f" starts one that can, and sets {KEY_SETTING}."
        )
    headers = {"Authorization": f"Bearer {key}"}
    url = bank_url("increase_fake")
    return IncreaseBank(BankRequests(session, url, "Increase's fake", report, headers))


class IncreaseBank:
    name = "Increase"

    def __init__(self, requests: BankRequests) -> None:
        self._requests = requests
        self._numbers: dict[str, str] = {}

    async def deposit(self, account_id: str, amount: Decimal, counterparty: str) -> None:
        await self.move(account_id, amount, "credit", counterparty)

    async def move(
        self,
        account_id: str,
        amount: Decimal,
        direction: Literal["credit", "debit"],
        counterparty: str,
    ) -> None:
        number, cents = await self._number(account_id), cents_of(amount)
        if direction == "credit":
            wire = {"account_number_id": number, "amount": cents, "debtor_name": counterparty}
            await self._requests.post("/simulations/inbound_wire_transfers", wire)
        else:
            entry = {"account_number_id": number, "amount": -cents, "company_name": counterparty}
            await self._requests.post("/simulations/inbound_ach_transfers", entry)

    async def make_statement(self, account_id: str, month: date) -> None:
        del month  # the simulation makes that of the current one
        await self._requests.post("/simulations/account_statements", {"account_id": account_id})

    async def sweep(self, account_id: str) -> None:
        of_account = urlencode({"account_id": account_id, "status.in": "enrolled"})
        found = await self._requests.get(f"/intrafi_account_enrollments?{of_account}")
        if not found["data"]:
            body = {"account_id": account_id, "email_address": CONTACT}
            await self._requests.post("/intrafi_account_enrollments", body)
        await self._requests.post(f"/fake/accounts/{account_id}/intrafi", {})

    async def _number(self, account_id: str) -> str:
        """The account number by which money reaches the account."""
        if account_id not in self._numbers:
            of_account = urlencode({"account_id": account_id})
            found = await self._requests.get(f"/account_numbers?{of_account}")
            if not found["data"]:
                raise SimulationFailed(f"Account {account_id} has no number at Increase.")
            self._numbers[account_id] = found["data"][0]["id"]
        return self._numbers[account_id]
