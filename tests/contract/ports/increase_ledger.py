"""Increase's fake behind ledger_read's two ports, with what of its accounts is ours."""

from __future__ import annotations

import uuid
from collections import defaultdict
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import UTC, date, datetime, time
from decimal import Decimal
from pathlib import Path

import aiohttp
import pytest
from increase import AsyncIncrease
from increase.types import Account, ExternalAccount

from libs.contracts.accounts import LinkedExternalAccount
from libs.contracts.deposit_locations import ListDepositLocations
from libs.contracts.ownership import AccountHolder, CustomerOwner
from libs.contracts.principal import Principal
from libs.persistence.engine import Database
from libs.providers.increase.client import IncreaseClient
from libs.providers.increase.money import cents_of
from services.ledger_read.adapters.increase.composition import open_role
from services.ledger_read.adapters.increase.numbers import AccountNumbers
from services.ledger_read.adapters.increase.postings import IncreasePostings
from services.ledger_read.adapters.increase.reading import Reader
from services.ledger_read.ports import FinancialRole, PostingSource
from tests.contract.ports.ledger_banks import Opened
from tests.support.increase_bank import intrafi
from tests.support.increase_bank.postings import post
from tests.support.increase_bank.server import RunningBank, running_bank
from tests.support.increase_clients import client_of, give_number, link_external, open_account
from tests.support.pace import pace

KEY = "the-key-of-the-tests"
READER = "the-key-of-ledger-read"
SOON_SECONDS = 10.0
NOT_ASKED = "handlers ask onboarding for this, adapters do not"
NO_RESERVES = "Increase has no reserve accounts: the suite asks for them where a bank has them"


class OwnershipInTables:
    """See `ports.Ownership`; what onboarding would know of the accounts that a test opened."""

    def __init__(self) -> None:
        self.customers: dict[str, str] = {}
        self.linked: defaultdict[str, list[LinkedExternalAccount]] = defaultdict(list)
        self.asked_for: set[Principal] = set()

    async def require_account(self, principal: Principal, account_id: str, deadline: float) -> None:
        raise NotImplementedError(NOT_ASKED)

    async def account_ids(self, principal: Principal, deadline: float) -> list[str]:
        raise NotImplementedError(NOT_ASKED)

    async def customer(
        self, principal: Principal, customer_id: str, deadline: float
    ) -> CustomerOwner:
        raise NotImplementedError(NOT_ASKED)

    async def tenant_of(self, customer_id: str, deadline: float) -> str:
        raise NotImplementedError(NOT_ASKED)

    async def holders(
        self, principal: Principal, account_ids: Sequence[str], deadline: float
    ) -> dict[str, AccountHolder]:
        self.asked_for.add(principal)
        return {
            account_id: AccountHolder(
                account_id=account_id,
                customer_id=self.customers[account_id],
                business_name="Tidewater Goods LLC",
                dba="Tidewater",
            )
            for account_id in account_ids
            if account_id in self.customers
        }

    async def external_accounts(
        self, principal: Principal, customer_id: str, deadline: float
    ) -> list[LinkedExternalAccount]:
        self.asked_for.add(principal)
        return list(self.linked[customer_id])


class AccountsAtIncrease:
    """What of `LedgerBank` is made by documented requests alone."""

    has_reserves = False

    def __init__(
        self,
        increase: AsyncIncrease,
        ownership: OwnershipInTables,
        role: FinancialRole,
        *,
        program_id: str | None = None,
    ) -> None:
        self.financial = role.accounts
        self.ledger = role.ledger
        self.feed = role.feed
        self.read_again = role.read_again
        self.increase = increase
        self.ownership = ownership
        self.accounts: dict[str, Account] = {}
        self._external: ExternalAccount | None = None
        self._program_id = program_id

    async def open_account(self) -> Opened:
        account = await open_account(self.increase, program_id=self._program_id)
        await give_number(self.increase, account)
        opened = Opened(str(uuid.uuid4()), account.id)
        self.accounts[account.id] = account
        self.ownership.customers[account.id] = opened.customer_id
        return opened

    async def link(self, opened: Opened, number: str) -> None:
        made = await self.increase.external_accounts.create(
            account_number=number,
            routing_number="021000021",
            description="Other bank",
            idempotency_key=uuid.uuid4().hex,
        )
        links = self.ownership.linked[opened.customer_id]
        older = [link.model_copy(update={"primary": False}) for link in links]
        newest = LinkedExternalAccount(
            external_account_id=made.id,
            bank_name="Other Bank",
            name_on_account="Tidewater Goods LLC",
            routing_number=made.routing_number,
            account_number=number[-4:],
            primary=True,
        )
        self.ownership.linked[opened.customer_id] = [newest, *older]

    async def open_reserve(self, opened: Opened) -> None:
        raise NotImplementedError(NO_RESERVES)

    async def calculate(self, opened: Opened, day: date, amount: Decimal) -> None:
        raise NotImplementedError(NO_RESERVES)

    async def request_ach(
        self, opened: Opened, amount: Decimal, *, require_approval: bool = False
    ) -> str:
        if self._external is None:
            self._external = await link_external(self.increase)
        made = await self.increase.ach_transfers.create(
            account_id=opened.account_id,
            amount=cents_of(amount),
            statement_descriptor="Payroll",
            external_account_id=self._external.id,
            require_approval=require_approval,
            idempotency_key=uuid.uuid4().hex,
        )
        return made.id


class IncreaseLedgerBank(AccountsAtIncrease):
    """See `LedgerBank`. Made by `open_increase_ledger`."""

    posts_in_the_past = True

    def __init__(
        self,
        running: RunningBank,
        increase: AsyncIncrease,
        ownership: OwnershipInTables,
        role: FinancialRole,
        postings: PostingSource,
        database: Database,
        patch: pytest.MonkeyPatch,
    ) -> None:
        super().__init__(increase, ownership, role)
        self.database = database
        self.postings = postings
        self.running = running
        self._patch = patch

    async def open_funded_account(self) -> Opened:
        """With 1,000.00, of a wire."""
        opened = await self.open_account()
        numbers = await self.increase.account_numbers.list(account_id=opened.account_id)
        await self.increase.simulations.inbound_wire_transfers.create(
            account_number_id=numbers.data[0].id, amount=100_000, debtor_name="Harbor Café"
        )
        return opened

    async def post(self, opened: Opened, amount: Decimal, day: date) -> None:
        """At noon of a day in the past, which only the bank's own store can do."""
        store = self.running.bank.store
        moment = datetime.combine(day, time(12), UTC)
        with store.writing(), self._patch.context() as patch:
            patch.setattr(store, "now", lambda: int(moment.timestamp()) * 1_000_000)
            post(
                store,
                opened.account_id,
                cents_of(amount),
                "fee_payment",
                {
                    "amount": cents_of(amount),
                    "currency": "USD",
                    "fee_period_start": day.isoformat(),
                    "program_id": self.accounts[opened.account_id].program_id,
                },
                description="Booked in the past",
            )

    async def generate_statement(self, opened: Opened, year: int, month: int) -> None:
        await self.order(f"accounts/{opened.account_id}/statements", {"year": year, "month": month})

    async def sweep(self, opened: Opened, day: date) -> None:
        """Increase has the latest load only: it is read, as it would have been on the day."""
        account_id = opened.account_id
        self._patch.setattr(intrafi, "business_day", lambda: day)
        enrolled = await self.increase.intrafi_account_enrollments.list(account_id=account_id)
        if not enrolled.data:
            await self.increase.intrafi_account_enrollments.create(
                account_id=account_id,
                email_address="office@example.com",
                idempotency_key=uuid.uuid4().hex,
            )
        await self.order(f"accounts/{account_id}/intrafi", {})
        deadline = datetime.now(UTC).timestamp() + SOON_SECONDS * pace()
        await self.ledger.deposit_locations(ListDepositLocations(account_id=account_id), deadline)

    async def order(self, path: str, body: dict[str, object]) -> None:
        async with (
            aiohttp.ClientSession() as session,
            session.post(f"{self.running.url}/fake/{path}", json=body) as response,
        ):
            assert response.status == 200, await response.text()


@asynccontextmanager
async def open_increase_ledger(
    folder: Path, session: aiohttp.ClientSession, database: Database
) -> AsyncIterator[IncreaseLedgerBank]:
    """The fake, with ledger_read's adapters before it, whose key may read. What its types do not allow is a failure."""
    ownership = OwnershipInTables()
    async with AsyncExitStack() as opened:
        running = await opened.enter_async_context(
            running_bank(folder, {KEY: "everything", READER: "read"})
        )
        increase = await opened.enter_async_context(client_of(running.url, KEY))
        client = IncreaseClient("financial", running.url, READER, session)
        reader = Reader(client)
        postings = IncreasePostings(reader, AccountNumbers(reader))
        role = await open_role(client, opened, database, ownership)
        with pytest.MonkeyPatch.context() as patch:
            yield IncreaseLedgerBank(running, increase, ownership, role, postings, database, patch)
        assert running.bank.violations == []
