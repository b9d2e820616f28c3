"""What onboarding knows of a customer.

Records hold what views, events and decisions need, and nothing sensitive. What is sent to providers, `CustomerDetails`,
is read and opened where a provider is to be called.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Literal
from uuid import UUID

import msgspec

from libs.contracts import fields as f
from libs.contracts.customer_views import BusinessView
from libs.contracts.customers import Business, CustomerStatus, ExternalBankAccount, PersonFields
from services.onboarding.states import overall

PROVIDER_REFUSED = "provider_refused"
"""The code of the issue of a customer that was denied because a provider would not have it."""


class ProviderIssue(msgspec.Struct, frozen=True):
    """Something that verification wants. `detail` is the provider's sentence."""

    code: str
    detail: str


class Verification(msgspec.Struct, frozen=True):
    """What the identity provider last said of one business or person. `version` grows with its status."""

    identity_id: str
    status: CustomerStatus
    version: int
    issues: tuple[ProviderIssue, ...] = ()


class PersonDetails(PersonFields):
    """A person as stored: what onboarding and updates can say together."""

    phone_mobile: f.Phone | None = None
    gender: f.Text | None = None
    created_at: f.UtcDateTime | None = None
    employment_status: Literal["employed", "retired", "unemployed"] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CustomerRecord:
    """A business. `saga_id` names the steps by which it came to be; `sequence` counts its events."""

    tenant: str
    customer_id: UUID
    saga_id: UUID
    status: CustomerStatus
    business: BusinessView
    ein_last_four: str
    verification: Verification | None
    core_id: str | None
    refused_by_provider: bool
    sequence: int
    created_at: datetime
    updated_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class PersonRecord:
    """A person of a business. `person_id` is unique within the tenant only."""

    tenant: str
    person_id: UUID
    customer_id: UUID
    first_name: str
    last_name: str
    controller: bool
    ownership_percentage: Decimal
    verification: Verification | None
    core_id: str | None
    sequence: int

    @property
    def status(self) -> CustomerStatus:
        return self.verification.status if self.verification else CustomerStatus.PENDING


@dataclass(frozen=True, slots=True, kw_only=True)
class ExternalAccountRecord:
    """An external bank account; a draft until core banking has linked it and given `external_account_id`."""

    draft_id: UUID
    tenant: str
    customer_id: UUID
    external_account_id: str | None
    bank_name: str
    name_on_account: str
    routing_number: str
    number_last_four: str
    primary: bool
    sequence: int


DEPOSIT = "deposit"
RESERVE = "reserve"


@dataclass(frozen=True, slots=True, kw_only=True)
class AccountRecord:
    """An account at the bank: a deposit or a reserve account. `status` as the financial provider last reported it."""

    account_id: str
    customer_id: UUID
    account_number: str
    account_group: str
    status: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CustomerFile:
    """A customer with all that belongs to it: persons in the order given, external accounts primary first.

    Args:
        refusal: the words (`Refused.words`) of the provider that would not take it, until its saga's steps are purged.
    """

    customer: CustomerRecord
    persons: tuple[PersonRecord, ...]
    external_accounts: tuple[ExternalAccountRecord, ...]
    accounts: tuple[AccountRecord, ...]
    refusal: str | None

    def person(self, person_id: UUID) -> PersonRecord:
        """One of its persons."""
        return next(person for person in self.persons if person.person_id == person_id)

    @property
    def draft(self) -> ExternalAccountRecord | None:
        """The external account of the application, until it is linked."""
        drafts = (a for a in self.external_accounts if a.external_account_id is None)
        return next(drafts, None)

    @property
    def verifications(self) -> list[Verification | None]:
        """The identity provider's word on the business and on each person; None: not known yet."""
        return [self.customer.verification, *(person.verification for person in self.persons)]

    @property
    def verdict(self) -> CustomerStatus:
        """What the verifications make together."""
        return overall(one.status if one else CustomerStatus.PENDING for one in self.verifications)


@dataclass(frozen=True, slots=True, kw_only=True)
class CustomerDetails:
    """What is sent to providers of a customer: persons in the order of its file, the external account of its draft."""

    business: Business
    persons: tuple[PersonDetails, ...]
    draft: ExternalBankAccount | None


@dataclass(frozen=True, slots=True, kw_only=True)
class IdentityReport:
    """What the identity provider says of one business or person; see `Verification`.

    Args:
        business_id: our id of the business, or of the business that the person belongs to. Text: the provider has
            customers that are not ours.
        status: None: the provider says only that something of the business changed, and is to be asked.
    """

    business_id: str
    identity_id: str = ""
    status: str | None = None
    version: int = 0
    issues: tuple[ProviderIssue, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class IdentityEntry:
    """An entry of the identity provider's feed; `report` is None when it is about something else."""

    position: int
    type: str
    report: IdentityReport | None = None
    provider_cursor: str | None = None
    event_id: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AccountReport:
    """The state of an account. A customer's reserve account is opened by the bank, and is known by its report only.

    Args:
        customer_id: ours; text as in `IdentityReport`.
        status, account_number, account_group: None where the provider does not say.
    """

    account_id: str
    customer_id: str
    status: str | None = None
    account_number: str | None = None
    account_group: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AccountEntry:
    """An entry of the financial provider's feed; `report` is None when it is not about an account itself."""

    position: int
    type: str
    report: AccountReport | None = None
    provider_cursor: str | None = None
    event_id: str | None = None
