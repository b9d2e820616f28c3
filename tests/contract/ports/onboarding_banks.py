"""Banks behind onboarding's two ports, and what a test does at them beside the ports."""

from __future__ import annotations

from typing import Literal, Protocol
from uuid import UUID

import aiohttp

from libs.contracts.customers import CustomerStatus
from libs.providers.increase.capabilities import WRITES
from libs.providers.increase.client import IncreaseClient
from libs.providers.sandbox.http import ProviderClient
from services.onboarding.adapters.increase.core import IncreaseCoreBanking
from services.onboarding.adapters.increase.identity import IncreaseIdentityProvider
from services.onboarding.adapters.sandbox.core import SandboxCoreBanking
from services.onboarding.adapters.sandbox.identity import SandboxIdentityProvider
from services.onboarding.ports import CoreBanking, IdentityProvider
from tests.integration.onboarding.desk import GOOD, tax_number
from tests.integration.provider_sandbox.bank import Bank
from tests.support.capabilities import FOR_EVER
from tests.support.fake_providers import FakeProviders
from tests.support.increase_bank.faults import FaultRule
from tests.support.increase_bank.server import RunningBank
from tests.support.stack import Stack

Api = Literal["identity", "core"]

ENDINGS = {
    CustomerStatus.APPROVED: GOOD,
    CustomerStatus.DENIED: "0001",
    CustomerStatus.PENDING_REVIEW: "0002",
    CustomerStatus.AWAITING_DOCUMENTS: "0003",
}
"""The sandbox decides by the last four digits of the EIN or TIN."""


class OnboardingBank(Protocol):
    """A bank behind both ports of onboarding.

    Args:
        numbers_versions: what it says of an identity has a version that grows.
        knows_owners: external accounts belong to its customers.
        refuses_unknown_ids: that it does not know an id decides on a write.
        denial: its verdict on a business or person that it does not take.
    """

    numbers_versions: bool
    knows_owners: bool
    refuses_unknown_ids: bool
    denial: CustomerStatus

    @property
    def identity(self) -> IdentityProvider: ...

    @property
    def core(self) -> CoreBanking: ...

    def tax_number(self, status: CustomerStatus) -> str:
        """An EIN or TIN; the next business or person that is verified with it gets this status."""
        ...

    async def lose_next_answer(self, api: Api) -> None:
        """The provider carries the next write out, and its answer does not arrive."""
        ...

    async def records(self, api: Api, customer_id: UUID) -> int:
        """The truth: how many records of the business or person the provider has."""
        ...


class FakeOnboardingBank:
    """`FakeProviders`, which stand in for both in the tests of onboarding's sagas."""

    numbers_versions = knows_owners = refuses_unknown_ids = True
    denial = CustomerStatus.DENIED

    def __init__(self) -> None:
        self._bank = FakeProviders()
        self.identity: IdentityProvider = self._bank
        self.core: CoreBanking = self._bank

    def tax_number(self, status: CustomerStatus) -> str:
        self._bank.verdicts["business"] = [status]
        self._bank.verdicts["person"] = [status]
        return tax_number()

    async def lose_next_answer(self, api: Api) -> None:
        self._bank.loses_next_answer = True

    async def records(self, api: Api, customer_id: UUID) -> int:
        return self._bank.records[api, customer_id]


class SandboxOnboardingBank:
    numbers_versions = knows_owners = refuses_unknown_ids = True
    denial = CustomerStatus.DENIED

    def __init__(self, stack: Stack, bank: Bank, session: aiohttp.ClientSession) -> None:
        tokens, url = stack.environment.secrets.provider_tokens["onboarding"], stack.sandbox_url
        self.identity: IdentityProvider = SandboxIdentityProvider(
            ProviderClient("identity", f"{url}/identity", tokens["identity"], session), FOR_EVER
        )
        self.core: CoreBanking = SandboxCoreBanking(
            ProviderClient("core", f"{url}/core", tokens["core"], session), FOR_EVER
        )
        self._bank = bank

    def tax_number(self, status: CustomerStatus) -> str:
        return tax_number(ENDINGS[status])

    async def lose_next_answer(self, api: Api) -> None:
        ordered = await self._bank.fault(api, "accept_then_drop", times=1)
        assert ordered.status == 200, ordered

    async def records(self, api: Api, customer_id: UUID) -> int:
        records = await self._bank.truth("customers", customer_id=str(customer_id))
        return sum(record["api"] == api for record in records)


class IncreaseOnboardingBank:
    """Increase's fake, with core banking apart from identity verification: each makes entities of its own."""

    numbers_versions = knows_owners = refuses_unknown_ids = False
    denial = CustomerStatus.CANCELED

    def __init__(self, running: RunningBank, client: IncreaseClient) -> None:
        self._bank = running.bank
        self.identity: IdentityProvider = IncreaseIdentityProvider(client, WRITES)
        self.core: CoreBanking = IncreaseCoreBanking(
            client, WRITES, is_identity=False, program_id=None
        )

    def tax_number(self, status: CustomerStatus) -> str:
        return tax_number(ENDINGS[status])

    async def lose_next_answer(self, api: Api) -> None:
        rule = FaultRule(operation="POST /entities", kind="accept_then_drop", times=1)
        self._bank.faults.put(rule)

    async def records(self, api: Api, customer_id: UUID) -> int:
        rows = self._bank.store.rows(
            "SELECT body FROM object WHERE kind = 'entity' AND body LIKE ?",
            (f'%"description":"{customer_id}"%',),
        )
        return len(list(rows))
