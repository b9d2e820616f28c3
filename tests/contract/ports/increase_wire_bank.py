"""Increase behind payments' port: its fake, and what a test does at it beside the port."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import UUID

import aiohttp
from increase import AsyncIncrease

from libs.providers.increase.capabilities import WRITES
from libs.providers.increase.client import IncreaseClient
from libs.providers.increase.money import amount_of, cents_of
from libs.providers.increase.wires import wires_having_key
from services.payments.adapters.increase.core import IncreaseCoreBanking
from services.payments.adapters.increase.feed import WireFeed
from services.payments.ports import CoreBanking
from tests.contract.ports.wire_banks import Fault, Feed, Funded
from tests.support.increase_bank.server import running_bank
from tests.support.increase_clients import client_of, fund, link_external, open_account

KEY = "a key of a fake bank"
NOT_CARRIED_OUT = frozenset({"rejected", "canceled", "reversed"})


class IncreaseWireBank:
    """See `wire_banks.WireBank`."""

    refuses_unknown_ids = False

    def __init__(self, url: str, sdk: AsyncIncrease, session: aiohttp.ClientSession) -> None:
        client = IncreaseClient("core", url, KEY, session)
        self.core: CoreBanking = IncreaseCoreBanking(client, WRITES)
        self.feed: Feed = WireFeed(client)
        self.url = url
        self.client = client
        self._sdk = sdk
        self._session = session

    async def open_funded(self, amount: Decimal) -> Funded:
        account, external = await open_account(self._sdk), await link_external(self._sdk)
        await fund(self._sdk, account, cents_of(amount))
        return Funded(account.id, external.id)

    async def restrict(self, account_id: str) -> None:
        account = await self._sdk.accounts.retrieve(account_id)
        await self.order("POST", f"entities/{account.entity_id}", status="disabled")

    async def close(self, account_id: str) -> None:
        await self.order("PATCH", f"objects/{account_id}", fields={"status": "closed"})

    async def unlink(self, external_account_id: str) -> None:
        await self._sdk.external_accounts.update(external_account_id, status="archived")

    async def fail_next_send(self, fault: Fault) -> None:
        await self.order("PUT", "faults", operation="POST /wire_transfers", kind=fault, times=1)

    async def forget_key(self, _: UUID) -> None:
        await self.order("DELETE", "keys")

    async def complete(self, transaction_id: UUID) -> None:
        await self.move(transaction_id, "complete")

    async def reject(self, transaction_id: UUID, reason: str) -> str | None:
        await self.move(transaction_id, "rejected")
        return "rejected"

    async def send_back(self, transaction_id: UUID, reason: str) -> str | None:
        await self.move(transaction_id, "reversed")
        return "Invalid creditor account number."

    async def carried_out(self, account_id: str) -> list[tuple[str, Decimal]]:
        wires = (await self.order("GET", f"truth/wires?account_id={account_id}"))["wires"]
        return [
            (wire["idempotency_key"], amount_of(wire["amount"]))
            for wire in wires
            if wire["status"] not in NOT_CARRIED_OUT
        ]

    async def move(self, transaction_id: UUID, status: str, **more: Any) -> None:
        page = await wires_having_key(self._sdk, str(transaction_id))
        await self.order("POST", f"wires/{page.data[0].id}", status=status, **more)

    async def order(self, method: str, path: str, **body: Any) -> Any:
        """One request to the bank's own endpoints for tests."""
        url = f"{self.url}/fake/{path}"
        async with self._session.request(method, url, json=body or None) as answer:
            assert answer.status == 200, await answer.text()
            return await answer.json()


@asynccontextmanager
async def increase_bank(
    folder: Path, session: aiohttp.ClientSession
) -> AsyncIterator[IncreaseWireBank]:
    """Its wires wait until a test moves them. What Increase's types do not allow fails the test."""
    keys: Any = {KEY: "everything"}
    async with running_bank(folder, keys) as running, client_of(running.url, KEY) as sdk:
        running.bank.conduct.wire_seconds = 3600
        yield IncreaseWireBank(running.url, sdk, session)
        assert running.bank.violations == []
