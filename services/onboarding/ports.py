"""What onboarding needs of the providers: of two that it writes to, and of the feeds of two.

A method of a port describes one write in terms of its provider and sends nothing: `Saga` attempts the write by the rule
of `libs.providers.writing`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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


@dataclass(frozen=True, slots=True)
class KnownPerson:
    """A person as one provider knows it.

    Args:
        id, business_id: the provider's own of the person and of its business.
    """

    our_id: UUID
    id: str
    business_id: str


class IdentityProvider(Protocol):
    """A provider may take a business and its persons in one write: each write about one of them has all persons, in the
    order of the application.
    """

    def verify_business(
        self, customer_id: UUID, business: Business, persons: Sequence[PersonDetails]
    ) -> ProviderWrite[Verification]: ...

    def verify_person(
        self,
        person_id: UUID,
        customer_id: UUID,
        persons: Sequence[PersonDetails],
        number: int,
        business_identity_id: str,
    ) -> ProviderWrite[Verification]:
        """Of `persons[number]`, after its business."""
        ...

    def update_business(
        self, identity_id: str, changes: Changes
    ) -> ProviderWrite[Verification]: ...

    def update_person(
        self, known: KnownPerson, changes: Changes, person: PersonDetails
    ) -> ProviderWrite[Verification]:
        """`person`: as it is to be. The answer may have another identity id, which then is the person's."""
        ...

    def cancel_business(self, identity_id: str) -> ProviderWrite[Verification]:
        """Before its persons are canceled."""
        ...

    def cancel_person(self, identity_id: str) -> ProviderWrite[Verification]: ...

    async def current(
        self, identity_id: str, person_identity_ids: Sequence[str]
    ) -> Sequence[Verification]:
        """What the provider says now of a business and its persons; a person it does not know is left out.

        An entry of the feed without a status has us ask. Versions mean nothing here.

        Raises BanksideError: the provider gave no usable answer.
        """
        ...


class CoreBanking(Protocol):
    """See `IdentityProvider`. `identity_id` is that of the identity provider."""

    def create_business(
        self,
        customer_id: UUID,
        business: Business,
        persons: Sequence[PersonDetails],
        identity_id: str,
    ) -> ProviderWrite[CoreCustomer]: ...

    def create_person(
        self,
        person_id: UUID,
        customer_id: UUID,
        persons: Sequence[PersonDetails],
        number: int,
        business_core_id: str,
        identity_id: str,
    ) -> ProviderWrite[CoreCustomer]:
        """Of `persons[number]`, after its business."""
        ...

    def change_business(self, core_id: str, changes: Changes) -> ProviderWrite[CoreCustomer]: ...

    def change_person(
        self, known: KnownPerson, changes: Changes, person: PersonDetails, identity_id: str
    ) -> ProviderWrite[CoreCustomer]:
        """`person`: as it is to be. `identity_id`: after the change at the identity provider. The answer may have
        another core id, which then is the person's.
        """
        ...

    def close_business(self, core_id: str) -> ProviderWrite[Closed]:
        """With its accounts, after its persons are closed."""
        ...

    def close_person(self, core_id: str) -> ProviderWrite[Closed]: ...

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
