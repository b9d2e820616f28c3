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
    """By `created_at`; `start_date` and `end_date` are its days at the bank, both inclusive.

    `unknown`: only wires of which a send has begun and the outcome is not known.
    """

    tenant: f.FilterId | None = None
    customer_id: f.FilterId | None = None
    state: Annotated[WireState, Field(strict=False)] | None = None
    unknown: f.Flag = False
    start_date: f.CalendarDate | None = None
    end_date: f.CalendarDate | None = None

    @classmethod
    def broken_rules(cls, values: Mapping[str, Any]) -> list[BrokenRule]:
        return [*super().broken_rules(values), *broken_period(values)]


class GetOperatorWire(Command):
    transaction_id: str


class WireDecision(StrEnum):
    """`ask`: the provider is asked again. The others say what the bank did with the wire, for good."""

    ASK = "ask"
    SUBMITTED = "submitted"
    REJECTED = "rejected"


class ResolveWire(Write):
    """`reason` of a decision stands in the wire's history, which its customer sees."""

    model_config = ConfigDict(serialize_by_alias=True, validate_by_name=True)

    transaction_id: str
    decision: Annotated[WireDecision, Field(alias="as", strict=False)]


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
    """`outcome_unknown`: a send has begun, and it is not known whether the bank has the wire."""

    tenant: str
    customer_id: str
    outcome_unknown: bool


class WireSend(Model):
    """The command that sends the wire, while it is not final. `last_error` is the code of its last drive's error."""

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


class WireAtProvider(Model):
    """What core banking says of the wire now. `status` is its own word, `id` its own id.

    All but `found` are null where the bank does not say, and where it knows no such wire.
    """

    found: bool
    id: str | None = None
    state: WireState | None = None
    status: str | None = None
    amount: Decimal | None = None
    account_id: str | None = None
    reason: str | None = None


class OperatorWireDetail(OperatorWire):
    """A wire with its send, its request and the provider's view.

    `provider` is null when core banking gave no usable answer; `provider_error` then has the code of the error.
    """

    send: WireSend | None
    request: WireRequest | None
    provider: WireAtProvider | None
    provider_error: str | None


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
