"""Customers and their applications as operators see them, and what they do about them."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from enum import StrEnum
from http import HTTPMethod
from typing import Annotated, Any

from pydantic import Field

from libs.contracts import errors as e
from libs.contracts import fields as f
from libs.contracts.customer_views import BusinessDetails, Issue, PersonSummary
from libs.contracts.customers import CustomerStatus
from libs.contracts.ids import OurId
from libs.contracts.model import BrokenRule, Command, Model
from libs.contracts.operating.pages import Listed, ListPage, Write
from libs.contracts.operating.saga_steps import SagaStep
from libs.contracts.operation import Operation, declared_in
from libs.contracts.principal import Role
from libs.contracts.sensitive import Sensitive


class ListOperatorCustomers(ListPage):
    """By `created_at`; with `name` by the business's name, also when `order` says otherwise.

    Args:
        name: only businesses whose name begins so, in upper or lower case.
        stuck: only customers with a step that is of unknown outcome for a minute, a refused compensation that was not
            settled, or a parked command.
    """

    tenant: f.FilterId | None = None
    status: Annotated[CustomerStatus, Field(strict=False)] | None = None
    """Only customers with this status."""
    name: f.Text | None = None
    stuck: f.Flag = False

    @classmethod
    def broken_rules(cls, values: Mapping[str, Any]) -> list[BrokenRule]:
        rules = super().broken_rules(values)
        if values.get("name") is not None and str(values.get("stuck")).lower() == "true":
            rules.append((("stuck",), "`name` and `stuck` are not given together"))
        return rules


class GetOperatorCustomer(Command):
    """A customer of any tenant, with everything about it that is not sensitive."""

    customer_id: Annotated[str, OurId()]


class OperatorCustomerSummary(Model):
    """A customer in a list."""

    customer_id: str
    tenant: str
    status: CustomerStatus
    """How far its application has come."""
    business_name: str
    """The legal name."""
    dba: str | None
    """The name that it does business under; null when it has none."""
    created_at: f.UtcDateTime
    updated_at: f.UtcDateTime


class OperatorPerson(PersonSummary):
    """A person of the customer."""

    controller: bool
    """Whether the person controls the business."""
    ownership_percentage: Decimal
    """How much of the business the person owns, in percent."""
    identity_id: str | None
    core_id: str | None


class OperatorAccount(Model):
    """An account of the customer at core banking."""

    id: str
    """The account's id: the `account_id` of other operations."""
    account_number: str
    """The last four digits; of a number of less than eight the last half."""
    account_group: str
    """What kind of account it is."""
    status: str
    """What core banking says of it."""


class OperatorExternalAccount(Model):
    """An external bank account, which has a place here before core banking has linked it."""

    draft_id: str
    """Our id, which it has before core banking has linked it."""
    external_bank_account_id: str | None
    """Core banking's id; null until it is linked."""
    bank_name: str
    name_on_account: str
    routing_number: str
    account_number: str
    """The last four digits; of a number of less than eight the last half."""
    primary: bool


class OperatorCustomer(Model):
    """A customer with all that belongs to it, nothing sensitive among it."""

    customer_id: str
    tenant: str
    status: CustomerStatus
    """How far its application has come."""
    business: BusinessDetails
    """The business."""
    identity_id: str | None
    core_id: str | None
    refused_by_provider: bool
    """Whether it was denied because a provider refused it, rather than by a decision about its identity."""
    issues: list[Issue]
    """What the identity provider wants to be given."""
    persons: list[OperatorPerson]
    """Its persons."""
    accounts: list[OperatorAccount]
    """Its accounts."""
    external_bank_accounts: list[OperatorExternalAccount]
    """Its external bank accounts."""
    steps: list[SagaStep]
    """Its steps at providers, the oldest first."""
    created_at: f.UtcDateTime
    updated_at: f.UtcDateTime


class SensitiveField(StrEnum):
    """What can be revealed: of the business its EIN, of a person TIN or date of birth, of an account its number."""

    EIN = "ein"
    TIN = "tin"
    DATE_OF_BIRTH = "date_of_birth"
    ACCOUNT_NUMBER = "account_number"
    EXTERNAL_ACCOUNT_NUMBER = "external_account_number"


_OF: dict[str, str | None] = {
    SensitiveField.EIN: None,
    SensitiveField.TIN: "person_id",
    SensitiveField.DATE_OF_BIRTH: "person_id",
    SensitiveField.ACCOUNT_NUMBER: "account_id",
    SensitiveField.EXTERNAL_ACCOUNT_NUMBER: "external_bank_account_id",
}
"""The member that says of which part of the customer each field is."""


class Reveal(Write):
    """One sensitive value of a customer.

    `tin` and `date_of_birth` want `person_id`, `account_number` wants `account_id`, `external_account_number` wants
    `external_bank_account_id`.
    """

    customer_id: Annotated[str, OurId()]
    field: Annotated[SensitiveField, Field(strict=False)]
    """Which value."""
    person_id: f.ResourceId | None = None
    """The person whose value it is."""
    account_id: f.FilterId | None = None
    """The account whose number it is."""
    external_bank_account_id: f.FilterId | None = None
    """The external bank account whose number it is."""

    @classmethod
    def broken_rules(cls, values: Mapping[str, Any]) -> list[BrokenRule]:
        field = values.get("field")
        if not isinstance(field, str) or field not in _OF:
            return []
        rules: list[BrokenRule] = []
        for name in filter(None, dict.fromkeys(_OF.values())):
            if (values.get(name) is not None) != (name == _OF[field]):
                wanted = "is needed for" if name == _OF[field] else "says nothing about"
                rules.append(((name,), f"`{name}` {wanted} `{field}`"))
        return rules


class Revealed(Model):
    """The value. The audit has who saw it, and not the value."""

    field: SensitiveField
    """Which value it is."""
    value: Annotated[str, Sensitive()]
    """The value, whole."""


LIST_CUSTOMERS = Operation(
    name="onboarding.operator_list_customers",
    method=HTTPMethod.GET,
    path="/operator/customers",
    role=Role.VIEWER,
    command=ListOperatorCustomers,
    reply=Listed[OperatorCustomerSummary],
    message="Customers found",
    summary="List customers of all tenants",
)
GET_CUSTOMER = Operation(
    name="onboarding.operator_get_customer",
    method=HTTPMethod.GET,
    path="/operator/customers/{customer_id}",
    role=Role.VIEWER,
    command=GetOperatorCustomer,
    reply=OperatorCustomer,
    message="Customer found",
    errors=(e.NotFound,),
    summary="Get a customer with its steps at providers, issues, persons and accounts",
)
REVEAL = Operation(
    name="onboarding.operator_reveal",
    operation_id="revealField",
    method=HTTPMethod.POST,
    path="/operator/customers/{customer_id}/reveal",
    role=Role.ADMIN,
    command=Reveal,
    reply=Revealed,
    message="Value revealed",
    errors=(e.NotFound,),
    summary="Show one sensitive value of a customer, which is audited",
)

OPERATIONS = declared_in(globals(), Operation)
