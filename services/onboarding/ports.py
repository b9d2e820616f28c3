"""What onboarding needs of the two providers that it writes to.

Every call of a port changes something at the provider and raises as `ProviderClient.write` does: ProviderRefusal (a
definite no), ProviderNotReached (certainly nothing sent), ProviderUnknown (it may have happened).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol
from uuid import UUID

import msgspec

from libs.contracts.customers import Business, ExternalBankAccount
from services.onboarding.models import PersonDetails, Verification

Changes = Mapping[str, Any]
"""Fields with their new values; null clears one, an object is merged."""


@dataclass(frozen=True, slots=True)
class Attempt:
    """One attempt at a step: its idempotency key, its deadline in Unix seconds, and whether it was tried before."""

    key: UUID
    deadline: float
    resumed: bool


class CoreCustomer(msgspec.Struct, frozen=True):
    core_id: str


class LinkedAccount(msgspec.Struct, frozen=True):
    external_account_id: str


class OpenedAccount(msgspec.Struct, frozen=True):
    account_id: str
    account_number: str


class Closed(msgspec.Struct, frozen=True):
    status: str


class IdentityProvider(Protocol):
    async def verify_business(
        self, customer_id: UUID, business: Business, attempt: Attempt
    ) -> Verification: ...

    async def verify_person(
        self, person_id: UUID, customer_id: UUID, person: PersonDetails, attempt: Attempt
    ) -> Verification: ...

    async def update(
        self, identity_id: str, changes: Changes, attempt: Attempt
    ) -> Verification: ...

    async def cancel(self, identity_id: str, attempt: Attempt) -> Verification: ...


class CoreBanking(Protocol):
    async def create_business(
        self, customer_id: UUID, business: Business, attempt: Attempt
    ) -> CoreCustomer: ...

    async def create_person(
        self, person_id: UUID, customer_id: UUID, person: PersonDetails, attempt: Attempt
    ) -> CoreCustomer: ...

    async def update_customer(
        self, core_id: str, changes: Changes, attempt: Attempt
    ) -> CoreCustomer: ...

    async def close_customer(self, core_id: str, attempt: Attempt) -> Closed: ...

    async def link_external_account(
        self, core_id: str, account: ExternalBankAccount, attempt: Attempt
    ) -> LinkedAccount:
        """Link as the primary one; the customer's others are not primary any more."""
        ...

    async def close_external_account(
        self, external_account_id: str, attempt: Attempt
    ) -> Closed: ...

    async def open_account(self, core_id: str, title: str, attempt: Attempt) -> OpenedAccount: ...
