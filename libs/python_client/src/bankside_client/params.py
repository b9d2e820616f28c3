"""What calls take. An amount is a Decimal or an int.

Made by `python -m libs.specs.clients` of the interface's document: do not edit.
"""

from __future__ import annotations

from datetime import date, datetime
from decimal import Decimal
from typing import Literal, NotRequired, TypedDict
from uuid import UUID

CountryCode = str

CustomerStatus = Literal[
    "pending", "awaiting_documents", "pending_review", "approved", "denied", "canceled"
]

DeliveryFilter = Literal["pending", "succeeded", "failed", "held", "failing"]

EmploymentStatus = Literal["employed", "retired", "unemployed"]

EventFilter = Literal[
    "*",
    "account",
    "account.closed",
    "account.opened",
    "account.restricted",
    "account.unrestricted",
    "ach",
    "ach.created",
    "ach.returned",
    "ach.settled",
    "ach.submitted",
    "customer",
    "customer.approved",
    "customer.created",
    "customer.denied",
    "customer.documents_required",
    "customer.pending_review",
    "customer.updated",
    "deposit_locations",
    "deposit_locations.updated",
    "external_account",
    "external_account.created",
    "external_account.primary_changed",
    "person",
    "person.created",
    "person.updated",
    "statement",
    "statement.available",
    "transaction",
    "transaction.created",
    "webhook_subscription",
    "webhook_subscription.test",
    "webhook_subscription.unavailable",
    "wire",
    "wire.approval_requested",
    "wire.approved",
    "wire.canceled",
    "wire.completed",
    "wire.created",
    "wire.rejected",
    "wire.returned",
    "wire.submitted",
]

UspsCode = Literal[
    "AK",
    "AL",
    "AR",
    "AS",
    "AZ",
    "CA",
    "CO",
    "CT",
    "DC",
    "DE",
    "FL",
    "FM",
    "GA",
    "GU",
    "HI",
    "IA",
    "ID",
    "IL",
    "IN",
    "KS",
    "KY",
    "LA",
    "MA",
    "MD",
    "ME",
    "MH",
    "MI",
    "MN",
    "MO",
    "MP",
    "MS",
    "MT",
    "NC",
    "ND",
    "NE",
    "NH",
    "NJ",
    "NM",
    "NV",
    "NY",
    "OH",
    "OK",
    "OR",
    "PA",
    "PR",
    "PW",
    "RI",
    "SC",
    "SD",
    "TN",
    "TX",
    "UT",
    "VA",
    "VI",
    "VT",
    "WA",
    "WI",
    "WV",
    "WY",
]

WantedStatus = Literal["active", "disabled"]

WireState = Literal[
    "pending_approval",
    "pending_submission",
    "submitted",
    "completed",
    "rejected",
    "returned",
    "canceled",
]


class AddExternalBankAccount(TypedDict):
    external_bank_account: ExternalBankAccount


class AddressInput(TypedDict):
    street_1: str
    street_2: NotRequired[str | None]
    city: str
    country: NotRequired[CountryCode]
    state: str
    zip_code: str


class AddressUpdate(TypedDict):
    street_1: NotRequired[str]
    street_2: NotRequired[str | None]
    city: NotRequired[str]
    country: NotRequired[CountryCode | None]
    state: NotRequired[str]
    zip_code: NotRequired[str]


class Business(TypedDict):
    business_name: str
    dba: NotRequired[str | None]
    naics_code: str
    business_description: NotRequired[str | None]
    formation_state: UspsCode
    formation_date: date | str
    ein: str
    phone: str
    email: str
    website: NotRequired[str | None]
    business_address: AddressInput
    mailing_address: NotRequired[AddressInput | None]
    backup_withholding: NotRequired[bool]
    is_public: NotRequired[bool]
    government_affiliated: NotRequired[bool]
    affiliated_entities: NotRequired[str | None]
    operations_abroad: NotRequired[bool]
    international_customers_served: NotRequired[bool]


class BusinessUpdate(TypedDict):
    business_name: NotRequired[str]
    dba: NotRequired[str | None]
    naics_code: NotRequired[str]
    business_description: NotRequired[str | None]
    formation_state: NotRequired[UspsCode]
    formation_date: NotRequired[date | str]
    ein: NotRequired[str]
    phone: NotRequired[str]
    email: NotRequired[str]
    website: NotRequired[str | None]
    business_address: NotRequired[AddressUpdate]
    mailing_address: NotRequired[AddressUpdate | None]
    backup_withholding: NotRequired[bool | None]
    is_public: NotRequired[bool | None]
    government_affiliated: NotRequired[bool | None]
    affiliated_entities: NotRequired[str | None]
    operations_abroad: NotRequired[bool | None]
    international_customers_served: NotRequired[bool | None]


class CreateSubscription(TypedDict):
    event_types: EventFilter
    callback_url: str
    description: NotRequired[str]


class DeclineWire(TypedDict):
    reason: str


class ExternalBankAccount(TypedDict):
    bank_name: str
    name_on_account: str
    routing_number: str
    account_number: str
    address_on_account: AddressInput


class OnboardCustomer(TypedDict):
    business: Business
    persons: list[Person]
    external_bank_account: ExternalBankAccount


class Person(TypedDict):
    first_name: str
    middle_name: NotRequired[str | None]
    last_name: str
    date_of_birth: date | str
    home_address: AddressInput
    tin: str
    email: str
    phone: str
    employer_name: NotRequired[str | None]
    occupation: NotRequired[str | None]
    ownership_percentage: NotRequired[Decimal | int]
    work_title: NotRequired[str | None]
    controller: NotRequired[bool]
    id: NotRequired[str | UUID | None]
    phone_mobile: NotRequired[str | None]
    gender: NotRequired[str | None]
    created_at: NotRequired[datetime | str | None]


class RecoverSubscription(TypedDict):
    since: datetime | str
    until: NotRequired[datetime | str | None]


class SendWire(TypedDict):
    sending_account_id: str
    external_account_id: str
    amount: Decimal | int
    purpose: str


class SetWirePolicy(TypedDict):
    per_wire_limit: NotRequired[Decimal | int | None]
    daily_limit: NotRequired[Decimal | int | None]
    daily_count: NotRequired[int | None]
    approval_threshold: NotRequired[Decimal | int | None]
    new_payee_hours: NotRequired[int | None]


class UpdateBusiness(TypedDict):
    business: BusinessUpdate


class UpdatePerson(TypedDict):
    first_name: NotRequired[str]
    middle_name: NotRequired[str | None]
    last_name: NotRequired[str]
    date_of_birth: NotRequired[date | str]
    home_address: NotRequired[AddressUpdate]
    tin: NotRequired[str]
    email: NotRequired[str]
    phone: NotRequired[str]
    employer_name: NotRequired[str | None]
    occupation: NotRequired[str | None]
    ownership_percentage: NotRequired[Decimal | int | None]
    work_title: NotRequired[str | None]
    controller: NotRequired[bool | None]
    employment_status: NotRequired[EmploymentStatus | None]


class UpdateSubscription(TypedDict):
    event_types: NotRequired[EventFilter]
    callback_url: NotRequired[str]
    description: NotRequired[str | None]
    status: NotRequired[WantedStatus]


class ListCustomers(TypedDict):
    page: NotRequired[int]
    limit: NotRequired[int]
    status: NotRequired[CustomerStatus]


class ListStatements(TypedDict):
    statement_id: NotRequired[str]
    start_date: NotRequired[date | str]
    end_date: NotRequired[date | str]


class ListAchRequests(TypedDict):
    reference_id: NotRequired[str]


class ListTransactions(TypedDict):
    transaction_id: NotRequired[str]
    start_date: NotRequired[date | str]
    end_date: NotRequired[date | str]
    page: NotRequired[int]
    limit: NotRequired[int]


class ListDepositLocations(TypedDict):
    page: NotRequired[int]
    limit: NotRequired[int]
    load_date: NotRequired[date | str]


class ListSettlementCalculations(TypedDict):
    token_type: Literal["rrc"]
    settlement_date: date | str
    source: NotRequired[str]


class ListWires(TypedDict):
    page: NotRequired[int]
    limit: NotRequired[int]
    state: NotRequired[WireState]
    start_date: NotRequired[date | str]
    end_date: NotRequired[date | str]


class ListCustomerDeliveries(TypedDict):
    page: NotRequired[int]
    limit: NotRequired[int]
    status: NotRequired[DeliveryFilter]


class ListPartnerDeliveries(TypedDict):
    page: NotRequired[int]
    limit: NotRequired[int]
    status: NotRequired[DeliveryFilter]


class ListCustomerEvents(TypedDict):
    after: NotRequired[str]
    event_type: NotRequired[EventFilter]
    limit: NotRequired[int]


class ListPartnerEvents(TypedDict):
    after: NotRequired[str]
    event_type: NotRequired[EventFilter]
    limit: NotRequired[int]
