"""What onboarding needs of the providers: of two that it writes to, and of the feeds of two.

A method of a port describes one write in terms of its provider and sends nothing: `Saga` attempts the write by the rule
of `libs.providers.writing`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol
from uuid import UUID

import msgspec

from libs.contracts.customers import Business, ExternalBankAccount
from libs.providers.feed_entries import Fetch
from libs.providers.newest_records import FetchNewest
from libs.providers.writing import ProviderWrite
from services.onboarding.models import (
    AccountEntry,
    IdentityEntry,
    PersonDetails,
    Verification,
)

Changes = Mapping[str, Any]
"""Fields with their new values; null clears one, an object is merged."""


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
    def verify_business(
        self, customer_id: UUID, business: Business
    ) -> ProviderWrite[Verification]: ...

    def verify_person(
        self, person_id: UUID, customer_id: UUID, person: PersonDetails
    ) -> ProviderWrite[Verification]: ...

    def update(self, identity_id: str, changes: Changes) -> ProviderWrite[Verification]: ...

    def cancel(self, identity_id: str) -> ProviderWrite[Verification]: ...


class CoreBanking(Protocol):
    def create_business(
        self, customer_id: UUID, business: Business
    ) -> ProviderWrite[CoreCustomer]: ...

    def create_person(
        self, person_id: UUID, customer_id: UUID, person: PersonDetails
    ) -> ProviderWrite[CoreCustomer]: ...

    def update_customer(self, core_id: str, changes: Changes) -> ProviderWrite[CoreCustomer]: ...

    def close_customer(self, core_id: str) -> ProviderWrite[Closed]: ...

    def link_external_account(
        self, core_id: str, account: ExternalBankAccount
    ) -> ProviderWrite[LinkedAccount]:
        """Link as the primary one; the customer's others are not primary any more.

        Refused with ALREADY_LINKED when the customer has an external account of this number.
        """
        ...

    def close_external_account(self, external_account_id: str) -> ProviderWrite[Closed]: ...

    def open_account(self, core_id: str, title: str) -> ProviderWrite[OpenedAccount]: ...


@dataclass(frozen=True, slots=True)
class Identity:
    """The identity role. `newest`: ids of our customers and persons."""

    writes: IdentityProvider
    feed: Fetch[IdentityEntry]
    newest: FetchNewest


@dataclass(frozen=True, slots=True)
class Core:
    """The core banking role. `newest`: ids of our customers and persons."""

    writes: CoreBanking
    newest: FetchNewest


@dataclass(frozen=True, slots=True)
class Financial:
    feed: Fetch[AccountEntry]


@dataclass(frozen=True, slots=True)
class Providers:
    identity: Identity
    core: Core
    financial: Financial


class Adapters(Protocol):
    """One company's adapters. A method is called for the roles that the company has."""

    def identity(self) -> Identity: ...

    def core(self) -> Core: ...

    def financial(self) -> Financial: ...
