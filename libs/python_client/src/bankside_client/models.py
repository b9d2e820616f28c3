"""What answers and events hold.

Made by `python -m libs.specs.clients` of the interface's document: do not edit.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import date, datetime
from decimal import Decimal
from typing import Literal

AccountGroup = Literal["deposit", "reserve"]

AccountStatus = Literal["pending", "open", "closed"]

AchStatus = Literal["pending", "submitted", "settled", "returned"]

BreakerRole = Literal["waits", "probe"]

CountryCode = str

CustomerStatus = Literal[
    "pending", "awaiting_documents", "pending_review", "approved", "denied", "canceled"
]

DeliveryStatus = Literal["pending", "succeeded", "failed", "held"]

HealthState = Literal["healthy", "slow", "breaker_open", "unavailable"]

SubscriptionStatus = Literal["active", "disabled", "unavailable"]

TransactionType = Literal["deposit", "withdrawal", "wire", "ach", "fee", "interest", "return"]

WireReason = Literal[
    "account_closed",
    "account_restricted",
    "external_account_not_linked",
    "insufficient_funds",
    "provider_refused",
    "returned",
    "declined",
    "approval_expired",
    "canceled_by_operator",
    "decided_by_operator",
]

WireState = Literal[
    "pending_approval",
    "pending_submission",
    "submitted",
    "completed",
    "rejected",
    "returned",
    "canceled",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Account:
    id: str
    account_number: str
    account_group: AccountGroup
    account_title: str
    name: str
    dba_name: str | None
    status: AccountStatus
    interest_earned_year_to_date: Decimal
    annual_percentage_yield_earned: Decimal
    is_restricted: bool
    close_date: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class AccountEventData:
    id: str
    account_number: str
    account_group: AccountGroup
    account_title: str
    name: str
    dba_name: str | None
    status: AccountStatus
    interest_earned_year_to_date: Decimal
    annual_percentage_yield_earned: Decimal
    is_restricted: bool
    close_date: datetime | None
    object: Literal["account"]
    customer_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AccountList:
    name: str
    dba_name: str | None
    accounts: list[AccountSummary]


@dataclass(frozen=True, slots=True, kw_only=True)
class AccountSummary:
    id: str
    account_number: str
    account_group: AccountGroup
    account_title: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AchEventData:
    reference_id: str
    originating_account_id: str
    status: AchStatus
    amount: str
    return_code: str | None
    return_description: str | None
    created_at: datetime
    updated_at: datetime
    object: Literal["ach"]
    customer_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AchRequest:
    reference_id: str
    originating_account_id: str
    status: AchStatus
    amount: str
    return_code: str | None
    return_description: str | None
    created_at: datetime
    updated_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Address:
    street_1: str
    street_2: str | None
    city: str
    country: CountryCode
    state: str
    zip_code: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Balance:
    account_id: str
    account_number: str
    available_balance: Money
    held_balance: Money
    total_balance: Money
    system_timestamp: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class BusinessDetails:
    business_name: str
    dba: str | None
    naics_code: str
    business_description: str | None
    formation_state: str
    formation_date: date
    phone: str
    email: str
    website: str | None
    business_address: Address
    mailing_address: Address
    backup_withholding: bool
    is_public: bool
    government_affiliated: bool
    affiliated_entities: str | None
    operations_abroad: bool
    international_customers_served: bool
    ein: str


@dataclass(frozen=True, slots=True, kw_only=True)
class BusinessView:
    business_name: str
    dba: str | None
    naics_code: str
    business_description: str | None
    formation_state: str
    formation_date: date
    phone: str
    email: str
    website: str | None
    business_address: Address
    mailing_address: Address
    backup_withholding: bool
    is_public: bool
    government_affiliated: bool
    affiliated_entities: str | None
    operations_abroad: bool
    international_customers_served: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Customer:
    customer_id: str
    status: CustomerStatus
    issues: list[Issue]
    persons: list[PersonSummary]
    accounts: list[CustomerAccount]
    external_bank_accounts: list[CustomerExternalBankAccount]
    created_at: datetime
    updated_at: datetime
    business: BusinessDetails


@dataclass(frozen=True, slots=True, kw_only=True)
class CustomerAccount:
    id: str
    account_number: str
    status: AccountStatus


@dataclass(frozen=True, slots=True, kw_only=True)
class CustomerEventData:
    customer_id: str
    status: CustomerStatus
    issues: list[Issue]
    persons: list[PersonSummary]
    accounts: list[CustomerAccount]
    external_bank_accounts: list[CustomerExternalBankAccount]
    created_at: datetime
    updated_at: datetime
    object: Literal["customer"]
    business: BusinessView


@dataclass(frozen=True, slots=True, kw_only=True)
class CustomerExternalBankAccount:
    external_bank_account_id: str
    bank_name: str
    account_number: str
    primary: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Delivery:
    delivery_id: str
    event_id: str
    event_type: str
    status: DeliveryStatus
    attempts_made: int
    next_attempt_at: datetime | None
    circuit_breaker: BreakerRole | None
    created_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class DeliveryAttempt:
    attempted_at: datetime
    duration_ms: int
    response_status: int | None
    error: str | None
    response_body: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class DeliveryDetail:
    delivery_id: str
    event_id: str
    event_type: str
    status: DeliveryStatus
    attempts_made: int
    next_attempt_at: datetime | None
    circuit_breaker: BreakerRole | None
    created_at: datetime
    attempts: list[DeliveryAttempt]


@dataclass(frozen=True, slots=True, kw_only=True)
class DepositLocation:
    location_id: int
    name: str
    city_and_state: str
    balance: Decimal


@dataclass(frozen=True, slots=True, kw_only=True)
class DepositLocationsEventData:
    object: Literal["deposit_locations"]
    account_id: str
    customer_id: str
    as_of_date: date
    locations: int
    balance: Decimal


@dataclass(frozen=True, slots=True, kw_only=True)
class ExternalAccount:
    external_account_id: str
    external_account_number: str = field(repr=False)
    external_account_title: str
    external_institution_aba: str
    external_institution_name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ExternalAccountEventData:
    object: Literal["external_account"]
    external_account_id: str
    customer_id: str
    bank_name: str
    name_on_account: str
    routing_number: str
    account_number: str
    primary: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ExternalBankAccountAdded:
    external_bank_account_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Issue:
    code: str
    detail: str
    person_id: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class LastError:
    at: datetime
    response_status: int | None
    error: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkedExternalAccount:
    external_account_id: str
    bank_name: str
    name_on_account: str
    routing_number: str
    account_number: str
    primary: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Money:
    amount: Decimal
    currency: str


@dataclass(frozen=True, slots=True, kw_only=True)
class OnboardedBusiness:
    customer_id: str
    account_id: str | None
    account_number: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class OnboardedExternalBankAccount:
    external_bank_account_id: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class OnboardedPerson:
    customer_id: str
    first_name: str
    last_name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class OnboardingResult:
    status: CustomerStatus
    business: OnboardedBusiness
    external_bank_account: OnboardedExternalBankAccount
    persons: list[OnboardedPerson]


@dataclass(frozen=True, slots=True, kw_only=True)
class PartnerAccountList:
    name: str
    dba_name: str | None
    accounts: list[PartnerAccountSummary]


@dataclass(frozen=True, slots=True, kw_only=True)
class PartnerAccountSummary:
    id: str
    account_number: str
    account_group: AccountGroup
    account_title: str
    status: AccountStatus
    interest_earned_year_to_date: Decimal
    annual_percentage_yield_earned: Decimal
    close_date: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class PersonEventData:
    customer_id: str
    first_name: str
    last_name: str
    status: CustomerStatus
    object: Literal["person"]
    business_customer_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PersonSummary:
    customer_id: str
    first_name: str
    last_name: str
    status: CustomerStatus


@dataclass(frozen=True, slots=True, kw_only=True)
class Recovery:
    scheduled: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SettlementCalculation:
    reserve_account_number: str
    amount: str
    ach_file: str | None
    created_at: datetime
    settlement_date: date


@dataclass(frozen=True, slots=True, kw_only=True)
class Statement:
    statement_id: str
    start_date: date
    end_date: date
    year: int
    month: int
    generated_at: datetime
    formats: StatementFormat


@dataclass(frozen=True, slots=True, kw_only=True)
class StatementEventData:
    statement_id: str
    start_date: date
    end_date: date
    year: int
    month: int
    generated_at: datetime
    object: Literal["statement"]
    account_id: str
    customer_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class StatementFormat:
    format: Literal["pdf"]
    url: str
    url_expires_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Subscription:
    subscription_id: str
    event_type: str
    callback_url: str
    description: str
    status: SubscriptionStatus
    created_at: datetime
    updated_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class SubscriptionEventData:
    subscription_id: str
    event_type: str
    callback_url: str
    description: str
    status: SubscriptionStatus
    created_at: datetime
    updated_at: datetime
    object: Literal["webhook_subscription"]
    customer_id: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class SubscriptionHealth:
    state: HealthState
    since: datetime | None
    last_success_at: datetime | None
    last_error: LastError | None
    next_probe_at: datetime | None
    pending: int
    failing: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SubscriptionSecret:
    secret: str = field(repr=False)
    previous_secret_expires_at: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Transaction:
    transaction_id: str
    account_number: str
    account_group: AccountGroup
    type: TransactionType
    settled_at: datetime
    counterparty_name: str | None
    counterparty_id: str | None
    amount: Decimal
    debit_credit_flag: bool
    tx_uuid: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TransactionEventData:
    transaction_id: str
    account_number: str
    account_group: AccountGroup
    type: TransactionType
    settled_at: datetime
    counterparty_name: str | None
    counterparty_id: str | None
    amount: Decimal
    debit_credit_flag: bool
    tx_uuid: str
    object: Literal["transaction"]
    account_id: str
    customer_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Wire:
    transaction_id: str
    sending_account_id: str
    external_account_id: str
    amount: Decimal
    note: str
    state: WireState
    reason: WireReason | None
    reason_detail: str | None
    history: list[WireStep]
    created_at: datetime
    updated_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class WireEventData:
    transaction_id: str
    sending_account_id: str
    external_account_id: str
    amount: Decimal
    note: str
    state: WireState
    reason: WireReason | None
    reason_detail: str | None
    history: list[WireStep]
    created_at: datetime
    updated_at: datetime
    object: Literal["wire"]
    customer_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class WirePolicy:
    customer_id: str
    per_wire_limit: Decimal | None
    daily_limit: Decimal | None
    daily_count: int | None
    approval_threshold: Decimal | None
    new_payee_hours: int | None
    updated_at: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class WireResult:
    transaction_id: str
    sending_account_id: str
    external_account_id: str
    amount: Decimal
    note: str


@dataclass(frozen=True, slots=True, kw_only=True)
class WireStep:
    state: WireState
    at: datetime
    reason: WireReason | None
    reason_detail: str | None
    by: str | None
    comment: str | None


EventData = (
    AccountEventData
    | AchEventData
    | CustomerEventData
    | DepositLocationsEventData
    | ExternalAccountEventData
    | PersonEventData
    | StatementEventData
    | SubscriptionEventData
    | TransactionEventData
    | WireEventData
)

EVENT_DATA: dict[str, type[EventData]] = {
    "account.closed": AccountEventData,
    "account.opened": AccountEventData,
    "account.restricted": AccountEventData,
    "account.unrestricted": AccountEventData,
    "ach.created": AchEventData,
    "ach.returned": AchEventData,
    "ach.settled": AchEventData,
    "ach.submitted": AchEventData,
    "customer.approved": CustomerEventData,
    "customer.created": CustomerEventData,
    "customer.denied": CustomerEventData,
    "customer.documents_required": CustomerEventData,
    "customer.pending_review": CustomerEventData,
    "customer.updated": CustomerEventData,
    "deposit_locations.updated": DepositLocationsEventData,
    "external_account.created": ExternalAccountEventData,
    "external_account.primary_changed": ExternalAccountEventData,
    "person.created": PersonEventData,
    "person.updated": PersonEventData,
    "statement.available": StatementEventData,
    "transaction.created": TransactionEventData,
    "webhook_subscription.test": SubscriptionEventData,
    "webhook_subscription.unavailable": SubscriptionEventData,
    "wire.approval_requested": WireEventData,
    "wire.approved": WireEventData,
    "wire.canceled": WireEventData,
    "wire.completed": WireEventData,
    "wire.created": WireEventData,
    "wire.rejected": WireEventData,
    "wire.returned": WireEventData,
    "wire.submitted": WireEventData,
}
"""What `data` of an event is, by its type."""
