"""Wires as operators see them, and what they do about them."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from enum import StrEnum
from http import HTTPMethod
from typing import Annotated, Any

from pydantic import ConfigDict, Field

from libs.contracts import errors as e
from libs.contracts import fields as f
from libs.contracts.model import BrokenRule, Command, Model
from libs.contracts.operating.pages import Listed, ListPage, Write
from libs.contracts.operation import Operation, declared_in
from libs.contracts.periods import broken_period
from libs.contracts.principal import Role
from libs.contracts.wires import Wire, WireState


class ListOperatorWires(ListPage):
    """By `created_at`; `start_date` and `end_date` are its days at the bank, both inclusive."""

    tenant: f.FilterId | None = None
    customer_id: f.ResourceId | None = None
    """Only wires of this customer."""
    state: Annotated[WireState, Field(strict=False)] | None = None
    """Only wires that are in this state."""
    unknown: f.Flag = False
    """Only wires of which a send has begun and the outcome is not known."""
    start_date: f.CalendarDate | None = None
    """From this day on."""
    end_date: f.CalendarDate | None = None
    """Up to this day."""

    @classmethod
    def broken_rules(cls, values: Mapping[str, Any]) -> list[BrokenRule]:
        return [*super().broken_rules(values), *broken_period(values)]


class GetOperatorWire(Command):
    """A wire of any tenant. Core banking is asked for its view at the same time."""

    transaction_id: str


class WireDecision(StrEnum):
    """`ask`: the provider is asked again; a wire that is `submitted` or `completed` is brought into the state that it
    has there. The others say what the bank did with a wire of unknown outcome, for good.
    """

    ASK = "ask"
    SUBMITTED = "submitted"
    REJECTED = "rejected"


class ResolveWire(Write):
    """`reason` of a decision stands in the wire's history, which its customer sees."""

    model_config = ConfigDict(serialize_by_alias=True, validate_by_name=True)

    transaction_id: str
    decision: Annotated[WireDecision, Field(alias="as", strict=False)]
    """What is decided."""


class OperatorCancelWire(Write):
    """`reason` stands in the wire's history, which its customer sees."""

    transaction_id: str


class OperatorApproveWire(Write):
    """`reason` stands in the wire's history as its comment, which its customer sees."""

    transaction_id: str


class OperatorDeclineWire(Write):
    """`reason` stands in the wire's history as its comment, which its customer sees."""

    transaction_id: str


class OperatorWire(Wire):
    """A wire of any tenant."""

    tenant: str
    customer_id: str
    outcome_unknown: bool
    """Whether a send has begun, and it is not known whether the bank has the wire."""


class WireSend(Model):
    """The command that sends the wire, while it is not final."""

    attempts: int
    last_error: str | None
    next_attempt_at: f.UtcDateTime | None
    is_driven: bool
    parked_at: f.UtcDateTime | None
    parked_because: str | None


class WireRequest(Model):
    """The request that asked for the wire. The key is null when its record cannot be read."""

    subscription_key: str | None
    request_id: str
    accepted_at: f.UtcDateTime
    """When the command of the request was accepted."""


class WireAtProvider(Model):
    """What core banking says of the wire now.

    All but `found` are null where the bank does not say, and where it knows no such wire.
    """

    found: bool
    """Whether the bank knows the wire."""
    id: str | None = None
    """The bank's own id."""
    state: WireState | None = None
    """The bank's status as a state of ours; null where it is none that we know."""
    status: str | None = None
    """The bank's own word."""
    amount: Decimal | None = None
    """US dollars."""
    account_id: str | None = None
    """The account that pays."""
    reason: str | None = None
    """The bank's own words for why it rejected or returned the wire."""


class OperatorWireDetail(OperatorWire):
    """A wire with its send, its request and the provider's view."""

    send: WireSend | None
    """The command that sends the wire; null when it is final."""
    request: WireRequest | None
    """The request that asked for the wire; null when it is kept no longer."""
    provider: WireAtProvider | None
    """What core banking says of the wire now; null when it gave no usable answer."""
    provider_error: str | None
    """The code of core banking's error; null when it answered."""


LIST_WIRES = Operation(
    name="payments.operator_list_wires",
    method=HTTPMethod.GET,
    path="/operator/wires",
    role=Role.VIEWER,
    command=ListOperatorWires,
    reply=Listed[OperatorWire],
    message="Wires found",
    summary="List wires of all tenants",
)
GET_WIRE = Operation(
    name="payments.operator_get_wire",
    method=HTTPMethod.GET,
    path="/operator/wires/{transaction_id}",
    role=Role.VIEWER,
    command=GetOperatorWire,
    reply=OperatorWireDetail,
    message="Wire found",
    errors=(e.NotFound,),
    summary="Get a wire with its send, its request and what core banking says of it now",
)
RESOLVE_WIRE = Operation(
    name="payments.operator_resolve_wire",
    method=HTTPMethod.POST,
    path="/operator/wires/{transaction_id}/resolve",
    role=Role.OPERATOR,
    command=ResolveWire,
    reply=OperatorWire,
    message="Wire resolved",
    errors=(e.NotFound, e.InvalidState),
    summary="Say what became of a wire whose outcome is not known, or have the provider asked again",
)
CANCEL_WIRE = Operation(
    name="payments.operator_cancel_wire",
    method=HTTPMethod.POST,
    path="/operator/wires/{transaction_id}/cancel",
    role=Role.OPERATOR,
    command=OperatorCancelWire,
    reply=OperatorWire,
    message="Wire canceled",
    errors=(e.NotFound, e.InvalidState),
    summary="Cancel a wire of which no send has begun",
)
APPROVE_WIRE = Operation(
    name="payments.operator_approve_wire",
    method=HTTPMethod.POST,
    path="/operator/wires/{transaction_id}/approve",
    role=Role.OPERATOR,
    command=OperatorApproveWire,
    reply=OperatorWire,
    message="Wire approved",
    errors=(e.NotFound, e.InvalidState, e.LimitExceeded),
    summary="Approve a wire that waits for it, which is then sent",
)
DECLINE_WIRE = Operation(
    name="payments.operator_decline_wire",
    method=HTTPMethod.POST,
    path="/operator/wires/{transaction_id}/decline",
    role=Role.OPERATOR,
    command=OperatorDeclineWire,
    reply=OperatorWire,
    message="Wire declined",
    errors=(e.NotFound, e.InvalidState),
    summary="Decline a wire that waits for approval",
)

OPERATIONS = declared_in(globals(), Operation)
