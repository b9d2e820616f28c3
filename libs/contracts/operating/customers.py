"""Customers, their applications and the steps of these as operators see them, and what they do about them."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from enum import StrEnum
from http import HTTPMethod
from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field

from libs.contracts import errors as e
from libs.contracts import fields as f
from libs.contracts.customer_views import BusinessDetails, Issue, PersonSummary
from libs.contracts.customers import CustomerStatus
from libs.contracts.model import BrokenRule, Command, Model
from libs.contracts.operating.pages import Listed, ListPage, Write
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
    name: f.Text | None = None
    stuck: f.Flag = False

    @classmethod
    def broken_rules(cls, values: Mapping[str, Any]) -> list[BrokenRule]:
        rules = super().broken_rules(values)
        if values.get("name") is not None and str(values.get("stuck")).lower() == "true":
            rules.append((("stuck",), "`name` and `stuck` are not given together"))
        return rules


class GetOperatorCustomer(Command):
    customer_id: str


class OperatorCustomerSummary(Model):
    customer_id: str
    tenant: str
    status: CustomerStatus
    business_name: str
    dba: str | None
    created_at: f.UtcDateTime
    updated_at: f.UtcDateTime


class OperatorPerson(PersonSummary):
    """`identity_id` and `core_id` are the providers' ids."""

    controller: bool
    ownership_percentage: Decimal
    identity_id: str | None
    core_id: str | None


class OperatorAccount(Model):
    id: str
    account_number: str
    """The last four digits only."""
    account_group: str
    status: str


class OperatorExternalAccount(Model):
    """`external_bank_account_id` is null until core banking has linked it."""

    draft_id: str
    external_bank_account_id: str | None
    bank_name: str
    name_on_account: str
    routing_number: str
    account_number: str
    """The last four digits only."""
    primary: bool


class StepCommand(Model):
    """The command that attempted a step last. `last_error` is the code of its last drive's error."""

    command_id: str
    attempts: int
    last_error: str | None
    next_attempt_at: f.UtcDateTime | None
    is_driven: bool
    parked_because: str | None
    finished_at: f.UtcDateTime | None


class SagaStep(Model):
    """A write at a provider.

    Args:
        compensation: it takes an earlier step back.
        outcome_unknown: it was sent, and it is not known whether it happened.
        first_sent_at: null while certainly nothing was sent.
        last_asked_at: when the provider was last sent the step or asked about it.
        resolution: what an operator said became of it.
        command: null when the command is not kept any more.
    """

    saga_id: str
    step: str
    tenant: str
    customer_id: str
    operation: str
    compensation: bool
    state: Literal["intended", "done", "refused"]
    outcome_unknown: bool
    refusal_reason: str | None
    refusal_code: str | None
    intended_at: f.UtcDateTime
    first_sent_at: f.UtcDateTime | None
    last_asked_at: f.UtcDateTime | None
    recorded_at: f.UtcDateTime | None
    settled_at: f.UtcDateTime | None
    resolution: str | None
    resolved_by: str | None
    resolution_reason: str | None
    resolved_at: f.UtcDateTime | None
    command_id: str | None
    command: StepCommand | None


class OperatorCustomer(Model):
    """A customer with all that belongs to it, nothing sensitive among it. `steps`: the oldest first."""

    customer_id: str
    tenant: str
    status: CustomerStatus
    business: BusinessDetails
    identity_id: str | None
    core_id: str | None
    refused_by_provider: bool
    issues: list[Issue]
    persons: list[OperatorPerson]
    accounts: list[OperatorAccount]
    external_bank_accounts: list[OperatorExternalAccount]
    steps: list[SagaStep]
    created_at: f.UtcDateTime
    updated_at: f.UtcDateTime


class StepKind(StrEnum):
    """`unknown`: sent, and it is not known whether it happened. `refused`: a refused compensation, not settled."""

    UNKNOWN = "unknown"
    REFUSED = "refused"


class ListSagaSteps(ListPage):
    """By the time of the first send, or of the refusal."""

    kind: Annotated[StepKind, Field(strict=False)]


class StepResolution(StrEnum):
    """`absent`: the provider holds nothing of the step, so that it is sent as if for the first time. `done`: it
    happened. `refused`: the provider refused it.
    """

    ABSENT = "absent"
    DONE = "done"
    REFUSED = "refused"


class ResolveStep(Write):
    """`result`: the provider's answer to a step that is done."""

    model_config = ConfigDict(serialize_by_alias=True, validate_by_name=True)

    saga_id: str
    step: str
    resolution: Annotated[StepResolution, Field(alias="as", strict=False)]
    result: dict[str, Any] | None = None

    @classmethod
    def broken_rules(cls, values: Mapping[str, Any]) -> list[BrokenRule]:
        if (values.get("as") == StepResolution.DONE) != (values.get("result") is not None):
            rule = "the provider's answer is given for a step that is done, and only then"
            return [(("result",), rule)]
        return []


class ResolvedStep(Model):
    """A step as it was before the decision. `is_open`: its command goes on; else the decision is only recorded."""

    saga_id: str
    step: str
    tenant: str
    customer_id: str
    operation: str
    command_id: str | None
    first_sent_at: f.UtcDateTime
    last_asked_at: f.UtcDateTime
    resolution: StepResolution
    is_open: bool


class SettleStep(Write):
    saga_id: str
    step: str


class SettledStep(Model):
    saga_id: str
    step: str
    settled: bool


class SensitiveField(StrEnum):
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

    customer_id: str
    field: Annotated[SensitiveField, Field(strict=False)]
    person_id: f.FilterId | None = None
    account_id: f.FilterId | None = None
    external_bank_account_id: f.FilterId | None = None

    @classmethod
    def broken_rules(cls, values: Mapping[str, Any]) -> list[BrokenRule]:
        field = values.get("field")
        if field not in set(SensitiveField):
            return []
        rules: list[BrokenRule] = []
        for name in filter(None, dict.fromkeys(_OF.values())):
            if (values.get(name) is not None) != (name == _OF[field]):
                wanted = "is needed for" if name == _OF[field] else "says nothing about"
                rules.append(((name,), f"`{name}` {wanted} `{field}`"))
        return rules


class Revealed(Model):
    field: SensitiveField
    value: Annotated[str, Sensitive()]


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
LIST_STEPS = Operation(
    name="onboarding.operator_list_steps",
    method=HTTPMethod.GET,
    path="/operator/saga-steps",
    role=Role.VIEWER,
    command=ListSagaSteps,
    reply=Listed[SagaStep],
    message="Steps found",
    summary="List steps of unknown outcome, or compensations that a provider refused",
)
RESOLVE_STEP = Operation(
    name="onboarding.operator_resolve_step",
    method=HTTPMethod.POST,
    path="/operator/saga-steps/{saga_id}/{step}/resolve",
    role=Role.OPERATOR,
    command=ResolveStep,
    reply=ResolvedStep,
    message="Step resolved",
    errors=(e.NotFound, e.InvalidState),
    summary="Say what became of a step whose outcome is not known",
)
SETTLE_STEP = Operation(
    name="onboarding.operator_settle_step",
    method=HTTPMethod.POST,
    path="/operator/saga-steps/{saga_id}/{step}/settle",
    role=Role.OPERATOR,
    command=SettleStep,
    reply=SettledStep,
    message="Compensation settled",
    errors=(e.NotFound,),
    summary="Say that a refused compensation has been seen to",
)

OPERATIONS = declared_in(globals(), Operation)
