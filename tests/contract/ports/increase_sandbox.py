"""Increase's own sandbox behind the ports, as it is documented: what it cannot be told to do is skipped.

BANKSIDE_TEST_INCREASE_KEY         a key of the sandbox; without one these tests are skipped
BANKSIDE_TEST_INCREASE_URL         another address, such as that of the fake of tests/support/increase_bank
BANKSIDE_TEST_INCREASE_PROGRAM_ID  of the accounts that are opened, where there is more than one program
"""

from __future__ import annotations

import os
from contextlib import AsyncExitStack
from datetime import date
from decimal import Decimal
from typing import Any, NoReturn
from uuid import UUID

import aiohttp
import pytest
from increase import AsyncIncrease

from libs.contracts.customers import CustomerStatus
from libs.persistence.engine import Database
from libs.providers.increase.answers import read_answer
from libs.providers.increase.capabilities import WRITES
from libs.providers.increase.client import IncreaseClient
from libs.providers.increase.money import amount_of, cents_of
from libs.providers.increase.wires import Wire, Wires, wires_having_key
from services.ledger_read.adapters.increase.composition import open_role
from services.ledger_read.ports import FinancialRole
from services.onboarding.adapters.increase.core import IncreaseCoreBanking as CustomersCore
from services.onboarding.adapters.increase.identity import IncreaseIdentityProvider
from services.onboarding.ports import CoreBanking as CoreBankingOfCustomers
from services.onboarding.ports import IdentityProvider
from services.payments.adapters.increase.core import IncreaseCoreBanking
from services.payments.adapters.increase.feed import WireFeed
from services.payments.ports import CoreBanking
from tests.contract.ports.increase_ledger import AccountsAtIncrease, OwnershipInTables
from tests.contract.ports.increase_wire_bank import NOT_CARRIED_OUT
from tests.contract.ports.ledger_banks import Opened
from tests.contract.ports.onboarding_banks import Api
from tests.contract.ports.wire_banks import Fault, Feed, Funded
from tests.integration.onboarding.desk import tax_number
from tests.support.increase_clients import client_of, fund, link_external, open_account
from tests.support.waiting import eventually

KEY = os.environ.get("BANKSIDE_TEST_INCREASE_KEY") or ""
URL = os.environ.get("BANKSIDE_TEST_INCREASE_URL") or "https://sandbox.increase.com"
PROGRAM_ID = os.environ.get("BANKSIDE_TEST_INCREASE_PROGRAM_ID") or None
NEWEST = 100

NO_FAULTS = "Increase's sandbox cannot be told to lose an answer"


def at_increase(fixture: str) -> Any:
    """The fixture of a bank at Increase's own sandbox, as a parameter."""
    reason = "BANKSIDE_TEST_INCREASE_KEY names no key of Increase's sandbox"
    skipped = pytest.mark.skipif(not KEY, reason=reason)
    return pytest.param(fixture, id="increase-sandbox", marks=[pytest.mark.increase, skipped])


def own_sandbox() -> AsyncIncrease:
    return client_of(URL, KEY)


def own_client(role: str, session: aiohttp.ClientSession) -> IncreaseClient:
    return IncreaseClient(role, URL, KEY, session)


async def has_posted(sdk: AsyncIncrease, account_id: str, cents: int) -> None:
    """Wait until the balance is this: a simulated transfer may be posted after its answer."""

    async def is_posted() -> bool:
        balance = await sdk.accounts.balance(account_id)
        return balance.current_balance == cents

    await eventually("the transfer is posted", is_posted)


class OwnWireBank:
    """See `wire_banks.WireBank`."""

    refuses_unknown_ids = False

    def __init__(self, sdk: AsyncIncrease, session: aiohttp.ClientSession) -> None:
        client = own_client("core", session)
        self.core: CoreBanking = IncreaseCoreBanking(client, WRITES)
        self.feed: Feed = WireFeed(client)
        self._sdk = sdk

    async def open_funded(self, amount: Decimal) -> Funded:
        account = await open_account(self._sdk, program_id=PROGRAM_ID)
        external = await link_external(self._sdk)
        await fund(self._sdk, account, cents_of(amount))
        await has_posted(self._sdk, account.id, cents_of(amount))
        return Funded(account.id, external.id)

    async def restrict(self, account_id: str) -> NoReturn:
        pytest.skip("no documented request disables an entity")

    async def close(self, account_id: str) -> NoReturn:
        pytest.skip("Increase closes an account only when it is empty")

    async def unlink(self, external_account_id: str) -> None:
        await self._sdk.external_accounts.update(external_account_id, status="archived")

    async def fail_next_send(self, fault: Fault) -> NoReturn:
        pytest.skip(NO_FAULTS)

    async def forget_key(self, _: UUID) -> NoReturn:
        pytest.skip("Increase's sandbox cannot be told to forget a key")

    async def complete(self, transaction_id: UUID) -> None:
        wire_id = await self._wire_id(transaction_id)
        await self._sdk.simulations.wire_transfers.submit(wire_id)

        async def is_complete() -> bool:
            wire = await self._sdk.wire_transfers.retrieve(wire_id)
            return wire.status == "complete"

        await eventually("the wire is complete", is_complete)

    async def reject(self, transaction_id: UUID, reason: str) -> NoReturn:
        pytest.skip("no simulation rejects a wire")

    async def send_back(self, transaction_id: UUID, reason: str) -> str | None:
        wire_id = await self._wire_id(transaction_id)
        simulations = self._sdk.simulations.wire_transfers.with_raw_response
        reversed_wire = read_answer(await simulations.reverse(wire_id), Wire)
        assert reversed_wire.reversal is not None
        return reversed_wire.reversal.description

    async def carried_out(self, account_id: str) -> list[tuple[str, Decimal]]:
        if "account_" not in account_id:
            return []  # of an account that is not there; Increase may refuse to list its wires
        wires = self._sdk.wire_transfers.with_raw_response
        page = read_answer(await wires.list(account_id=account_id, limit=NEWEST), Wires)
        return [
            (wire.idempotency_key or "", amount_of(wire.amount))
            for wire in page.data
            if wire.status not in NOT_CARRIED_OUT
        ]

    async def _wire_id(self, transaction_id: UUID) -> str:
        page = await wires_having_key(self._sdk, str(transaction_id))
        return page.data[0].id


class OwnOnboardingBank:
    """See `onboarding_banks.OnboardingBank`. Core banking is apart from identity verification, as at the fake."""

    numbers_versions = knows_owners = refuses_unknown_ids = False
    denial = CustomerStatus.CANCELED

    def __init__(self, sdk: AsyncIncrease, session: aiohttp.ClientSession) -> None:
        client = own_client("core", session)
        self.identity: IdentityProvider = IncreaseIdentityProvider(client, WRITES)
        self.core: CoreBankingOfCustomers = CustomersCore(
            client, WRITES, is_identity=False, program_id=PROGRAM_ID
        )
        self._sdk = sdk

    def tax_number(self, status: CustomerStatus) -> str:
        if status is not CustomerStatus.APPROVED:
            pytest.skip(
                "Increase's sandbox decides by no number, and a simulated verdict comes too late"
            )
        return tax_number()

    async def lose_next_answer(self, api: Api) -> NoReturn:
        pytest.skip(NO_FAULTS)

    async def records(self, api: Api, customer_id: UUID) -> int:
        page = await self._sdk.entities.list(limit=NEWEST)
        return sum(entity.description == str(customer_id) for entity in page.data)


class OwnLedgerBank(AccountsAtIncrease):
    """See `ledger_banks.LedgerBank`."""

    posts_in_the_past = False

    def __init__(
        self, sdk: AsyncIncrease, ownership: OwnershipInTables, role: FinancialRole
    ) -> None:
        super().__init__(sdk, ownership, role, program_id=PROGRAM_ID)
        self._totals: dict[str, int] = {}

    async def post(self, opened: Opened, amount: Decimal, day: date) -> None:
        cents, account_id = cents_of(abs(amount)), opened.account_id
        numbers = await self.increase.account_numbers.list(account_id=account_id)
        number_id = numbers.data[0].id
        if amount < 0:
            cents = -cents
            await self.increase.simulations.inbound_ach_transfers.create(
                account_number_id=number_id, amount=cents, company_name="Harbor Power"
            )
        else:
            await self.increase.simulations.inbound_wire_transfers.create(
                account_number_id=number_id, amount=cents, debtor_name="Harbor Café"
            )
        self._totals[account_id] = self._totals.get(account_id, 0) + cents
        await has_posted(self.increase, account_id, self._totals[account_id])

    async def generate_statement(self, opened: Opened, year: int, month: int) -> NoReturn:
        pytest.skip("Increase simulates the statement of the current month only")

    async def sweep(self, opened: Opened, day: date) -> NoReturn:
        pytest.skip("no simulation spreads a balance over program banks")


async def open_own_ledger(
    sdk: AsyncIncrease,
    session: aiohttp.ClientSession,
    opened: AsyncExitStack,
    database: Database,
) -> OwnLedgerBank:
    ownership = OwnershipInTables()
    role = await open_role(own_client("financial", session), opened, database, ownership)
    return OwnLedgerBank(sdk, ownership, role)
