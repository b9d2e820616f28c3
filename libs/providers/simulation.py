"""The port to a simulated bank, for demonstrations: deposits, withdrawals, statements and sweeps on request.

libs/providers/<company>/simulation.py    `open_bank`, imported when the company is the financial provider
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import date
from decimal import Decimal
from importlib import import_module
from typing import Any, Literal, Protocol

import aiohttp
from yarl import URL

from libs.contracts.exact_json import NotExactJson, decode, encode
from libs.providers.companies import DEFAULT, Company

SECONDS = 30.0

Report = Callable[[str, str, int, float], None]
"""Told of each request: method, path, status, and `time.perf_counter()` at its beginning."""


class SimulationFailed(Exception):
    """The bank did not do what it was told: one sentence."""


class SimulatedBank(Protocol):
    """What a story makes happen. Each method raises SimulationFailed."""

    name: str
    """As in "at the bank"."""

    async def deposit(self, account_id: str, amount: Decimal, counterparty: str) -> None: ...

    async def move(
        self,
        account_id: str,
        amount: Decimal,
        direction: Literal["credit", "debit"],
        counterparty: str,
    ) -> None:
        """Another's payment to the account, or out of it; a counterparty of a debit has at most 16 characters."""

    async def make_statement(self, account_id: str, month: date) -> None:
        """The statement of the month in which the day is, which is the current one."""

    async def sweep(self, account_id: str) -> None:
        """Spread what the account holds over program banks."""


@dataclass(frozen=True)
class BankRequests:
    """JSON over HTTP, as simulations speak it."""

    session: aiohttp.ClientSession
    url: str
    name: str
    report: Report
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)

    async def get(self, path: str) -> dict[str, Any]:
        return await self._send("GET", path, None)

    async def post(self, path: str, body: object) -> dict[str, Any]:
        return await self._send("POST", path, body)

    async def _send(self, method: str, path: str, body: object) -> dict[str, Any]:
        started = time.perf_counter()
        try:
            async with self.session.request(
                method,
                URL(self.url + path),
                data=None if body is None else encode(body),
                headers={**self.headers, "Content-Type": "application/json"},
                timeout=aiohttp.ClientTimeout(total=SECONDS),
                allow_redirects=False,
            ) as response:
                status, answer = response.status, decode(await response.read())
        except (aiohttp.ClientError, TimeoutError, NotExactJson):
            raise SimulationFailed(f"{self.name} gave no answer to {method} {path}.") from None
        if status != 200 or not isinstance(answer, dict):
            raise SimulationFailed(f"{self.name} answered {method} {path} with {status}.")
        self.report(method, path, status, started)
        return answer


def open_bank(
    session: aiohttp.ClientSession, bank_url: Callable[[str], str], report: Report
) -> SimulatedBank:
    """The bank that is the financial provider of the running stack.

    Args:
        bank_url: the URL of a bank by its name, as `BANKSIDE_<NAME>_URL` has it; raises where it is not known.
    """
    company = Company(os.environ.get("BANKSIDE_FINANCIAL_PROVIDER") or DEFAULT)
    module = import_module(f"libs.providers.{company}.simulation")
    opened: SimulatedBank = module.open_bank(session, bank_url, report)
    return opened
