"""Banks behind payments' port, and what a test does at them beside the port."""

from __future__ import annotations

import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from decimal import Decimal
from typing import Literal, Protocol
from uuid import UUID

import aiohttp
import asyncpg

from deploy.local.ports import LOOPBACK
from libs.providers.feed_entries import FeedCursor
from libs.providers.sandbox.http import ProviderClient
from libs.providers.writing import Capabilities
from services.payments.adapters.sandbox.core import CoreFeed, SandboxCoreBanking
from services.payments.models import FeedEntry
from services.payments.ports import CoreBanking
from tests.integration.provider_sandbox.bank import Bank, external_account
from tests.support.fake_core import Account, FakeCore, serving
from tests.support.ports import free_ports
from tests.support.stack import Stack

CAPABILITIES = Capabilities(keys_remembered_seconds=24 * 3600, longest_transit_seconds=60)
TOKEN = "a token of a fake bank"

Fault = Literal["accept_then_drop", "fail_after_success", "error"]
"""The bank carries the next send out and closes the connection; carries it out and answers 500; answers 500 alone."""


class Feed(Protocol):
    async def fetch(self, after: FeedCursor, limit: int) -> list[FeedEntry]: ...


@dataclass(frozen=True)
class Funded:
    """An account with money, and an external account that is linked to its customer."""

    account_id: str
    external_account_id: str


class WireBank(Protocol):
    """A bank behind payments' port.

    Args:
        refuses_unknown_ids: that it does not know an account decides on a wire.
    """

    refuses_unknown_ids: bool

    @property
    def core(self) -> CoreBanking: ...

    @property
    def feed(self) -> Feed: ...

    async def open_funded(self, amount: Decimal) -> Funded: ...

    async def restrict(self, account_id: str) -> None: ...

    async def close(self, account_id: str) -> None: ...

    async def unlink(self, external_account_id: str) -> None: ...

    async def fail_next_send(self, fault: Fault) -> None: ...

    async def forget_key(self, key: UUID) -> None:
        """As if the key were older than the bank's memory. A bank that never forgets does nothing."""
        ...

    async def complete(self, transaction_id: UUID) -> None: ...

    async def reject(self, transaction_id: UUID, reason: str) -> str | None:
        """The reason as the bank gives it: this one, or one of its own."""
        ...

    async def send_back(self, transaction_id: UUID, reason: str) -> str | None:
        """Return a completed wire. The reason as the bank gives it: this one, or one of its own."""
        ...

    async def carried_out(self, account_id: str) -> list[tuple[str, Decimal]]:
        """The truth: id and amount of each wire that the account was charged for or holds funds for."""
        ...


class FakeWireBank:
    """`FakeCore` over HTTP."""

    refuses_unknown_ids = True

    def __init__(self, core: FakeCore, url: str, session: aiohttp.ClientSession) -> None:
        client = ProviderClient("core", url, TOKEN, session)
        self.core: CoreBanking = SandboxCoreBanking(client, CAPABILITIES)
        self.feed: Feed = CoreFeed(client)
        self.fake = core

    async def open_funded(self, amount: Decimal) -> Funded:
        funded = Funded(f"acc_{uuid.uuid4().hex}", f"ext_{uuid.uuid4().hex}")
        self.fake.accounts[funded.account_id] = Account(amount)
        self.fake.linked.add(funded.external_account_id)
        return funded

    async def restrict(self, account_id: str) -> None:
        self.fake.accounts[account_id].restricted = True

    async def close(self, account_id: str) -> None:
        self.fake.accounts[account_id].closed = True

    async def unlink(self, external_account_id: str) -> None:
        self.fake.linked.remove(external_account_id)

    async def fail_next_send(self, fault: Fault) -> None:
        self.fake.next_fault = fault

    async def forget_key(self, key: UUID) -> None:
        del self.fake.keys[str(key)]

    async def complete(self, transaction_id: UUID) -> None:
        self.fake.become("completed", str(transaction_id))

    async def reject(self, transaction_id: UUID, reason: str) -> str | None:
        self.fake.become("rejected", str(transaction_id), reason)
        return reason

    async def send_back(self, transaction_id: UUID, reason: str) -> str | None:
        self.fake.become("returned", str(transaction_id), reason)
        return reason

    async def carried_out(self, account_id: str) -> list[tuple[str, Decimal]]:
        return [
            (transaction_id, Decimal(wire["amount"]))
            for transaction_id, wire in self.fake.wires.items()
            for _ in range(self.fake.executed[transaction_id])
            if wire["account_id"] == account_id
        ]


class SandboxWireBank:
    refuses_unknown_ids = True

    def __init__(self, stack: Stack, bank: Bank, session: aiohttp.ClientSession) -> None:
        token = stack.environment.secrets.provider_tokens["payments"]["core"]
        client = ProviderClient("core", f"{stack.sandbox_url}/core", token, session)
        self.core: CoreBanking = SandboxCoreBanking(client, CAPABILITIES)
        self.feed: Feed = CoreFeed(client)
        self._bank = bank
        self._database_url = stack.environment.database_urls["provider_sandbox"]

    async def open_funded(self, amount: Decimal) -> Funded:
        opened = await self._bank.open_account()
        await self._bank.deposit(opened.account_id, str(amount))
        link = await self._bank.done(
            "/core/external-accounts", external_account(opened.core_id, "123456789")
        )
        return Funded(opened.account_id, link["external_account_id"])

    async def restrict(self, account_id: str) -> None:
        await self._simulate(f"accounts/{account_id}/restrict")

    async def close(self, account_id: str) -> None:
        await self._simulate(f"accounts/{account_id}/close")

    async def unlink(self, external_account_id: str) -> None:
        await self._bank.done(f"/core/external-accounts/{external_account_id}/close", {})

    async def fail_next_send(self, fault: Fault) -> None:
        ordered = await self._bank.fault("core", fault, operation="send_wire", times=1)
        assert ordered.status == 200, ordered

    async def forget_key(self, key: UUID) -> None:
        connection = await asyncpg.connect(self._database_url)
        try:
            await connection.execute("DELETE FROM idempotency_record WHERE key = $1", str(key))
        finally:
            await connection.close()

    async def complete(self, transaction_id: UUID) -> None:
        await self._simulate(f"wires/{transaction_id}/complete")

    async def reject(self, transaction_id: UUID, reason: str) -> str | None:
        await self._simulate(f"wires/{transaction_id}/reject", {"reason": reason})
        return reason

    async def send_back(self, transaction_id: UUID, reason: str) -> str | None:
        await self._simulate(f"wires/{transaction_id}/return", {"reason": reason})
        return reason

    async def carried_out(self, account_id: str) -> list[tuple[str, Decimal]]:
        wires = await self._bank.truth("wires", account_id=account_id)
        return [(wire["transaction_id"], Decimal(wire["amount"])) for wire in wires]

    async def _simulate(self, path: str, body: object | None = None) -> None:
        done = await self._bank.simulate(path, body)
        assert done.status == 200, done


@asynccontextmanager
async def fake_core() -> AsyncIterator[tuple[FakeCore, str]]:
    """A fake core banking provider that listens, and the URL of its API."""
    core = FakeCore(TOKEN)
    (port,) = free_ports(1)
    async with serving(core, port):
        yield core, f"http://{LOOPBACK}:{port}/core"
