"""Wires: money sent from an account to an external account of the same customer."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from enum import StrEnum
from typing import Annotated, Any, Literal

from pydantic import Field, ValidationInfo, model_validator

from libs.contracts import fields as f
from libs.contracts.model import OF_ANY_RELEASE, BrokenRule, Command, Model
from libs.contracts.periods import broken_period


class WireState(StrEnum):
    """How far a wire has come. `rejected`, `returned` and `canceled` are final; `completed` may still be returned."""

    PENDING_APPROVAL = "pending_approval"
    PENDING_SUBMISSION = "pending_submission"
    SUBMITTED = "submitted"
    COMPLETED = "completed"
    REJECTED = "rejected"
    RETURNED = "returned"
    CANCELED = "canceled"


class WireReason(StrEnum):
    """Why a wire is in its state.

    `account_closed`, `account_restricted`, `external_account_not_linked`, `insufficient_funds`: the bank refused the
    wire, or rejected it later, for that. `provider_refused`: for another reason; `reason_detail` has what the bank says
    of it. `returned`: the receiving bank sent the money back; `reason_detail` likewise, and how much came back where it
    is not all. `declined`: a second key or an operator declined the wire. `approval_expired`: it was neither approved
    nor declined in time. `canceled_by_operator`: before it was sent. `decided_by_operator`: an operator recorded what
    the bank had done with it. Of the last two and of `declined`, the step's `comment` says why.
    """

    ACCOUNT_CLOSED = "account_closed"
    ACCOUNT_RESTRICTED = "account_restricted"
    EXTERNAL_ACCOUNT_NOT_LINKED = "external_account_not_linked"
    INSUFFICIENT_FUNDS = "insufficient_funds"
    PROVIDER_REFUSED = "provider_refused"
    RETURNED = "returned"
    DECLINED = "declined"
    APPROVAL_EXPIRED = "approval_expired"
    CANCELED_BY_OPERATOR = "canceled_by_operator"
    DECIDED_BY_OPERATOR = "decided_by_operator"


_REASONS = frozenset(reason.value for reason in WireReason)


def _with_reason_of_ours(values: Any, info: ValidationInfo) -> Any:
    """A reason that stands in no list of this release becomes the detail, for a reader of answers of any release."""
    if not (info.context and info.context.get(OF_ANY_RELEASE) and isinstance(values, Mapping)):
        return values
    words = values.get("reason")
    if not isinstance(words, str) or words in _REASONS:
        return values
    detail = values.get("reason_detail")
    return {**values, "reason": None, "reason_detail": f"{words}: {detail}" if detail else words}


class SendWire(Command):
    """Send money from an account of this customer to one of its linked external accounts.

    200 says that the bank has accepted the wire, or with the message "Wire waiting for approval" that another key has
    to approve it. A refusal is 409, and no money has moved; wires of a customer that is `denied` or `canceled` are
    refused with `invalid_state`. 504 `outcome_pending` has the wire's `transaction_id`: it goes on, and the same
    Idempotency-Key returns the result later. Never send it again under another key. `getWire` finds it once it is
    recorded: 503 or 404 before that does not say that it is not sent.
    """

    sending_account_id: f.Text
    """The account that pays: the `id` of one of the customer's accounts, open and not restricted."""
    external_account_id: f.Text
    """The account that is paid: one of the customer's linked external accounts."""
    amount: f.WireAmount
    """US dollars, more than 0, with at most two decimals."""
    purpose: f.Purpose
    """What the wire is for, for its receiver; the `note` of answers and events. The receiver sees it in Latin letters,
    and at most 140 characters of these.
    """


class ListWires(Command):
    """List the customer's wires, newest first."""

    page: f.Page = 1
    limit: f.Limit = 50
    state: Annotated[WireState, Field(strict=False)] | None = None
    """Only wires in this state."""
    start_date: f.CalendarDate | None = None
    """Only wires made on this day or later, by the bank's calendar (America/New_York)."""
    end_date: f.CalendarDate | None = None
    """Only wires made on this day or earlier."""

    @classmethod
    def broken_rules(cls, values: Mapping[str, Any]) -> list[BrokenRule]:
        return broken_period(values)


class GetWire(Command):
    """Get a wire: its state, why it is so, and every step that led there."""

    transaction_id: str


class CancelWire(Command):
    """Cancel a wire that waits to be sent or approved. Once a send has begun it is 409 `invalid_state`."""

    transaction_id: str


class ApproveWire(Command):
    """Approve a wire that waits for approval. It is sent, and the answer is that of `sendWire`. Another key than the
    one that asked for the wire has to do it.
    """

    transaction_id: str


class DeclineWire(Command):
    """Decline a wire that waits for approval: it is canceled. Another key than the one that asked for the wire has to
    do it.
    """

    transaction_id: str
    reason: f.Text
    """Why; it stands in the wire's history as the comment of that step."""


class WireResult(Model):
    """What was sent."""

    transaction_id: str
    sending_account_id: str
    """The account that pays."""
    external_account_id: str
    """The external account that is paid."""
    amount: Decimal
    """US dollars."""
    note: str
    """The `purpose` of the request."""


class WireStep(Model):
    """Arrival in a state."""

    state: WireState
    """The state."""
    at: f.UtcDateTime
    """When."""
    reason: WireReason | None
    """Why; null where there is nothing to say."""
    reason_detail: str | None = None
    """The bank's own words for the reason, where it gave some."""
    by: str | None = None
    """Who did it: a subscription key, or `operator:<name>`; null for what came from the bank or by itself."""
    comment: str | None = None
    """The reason that the key or operator in `by` gave."""

    @model_validator(mode="before")
    @classmethod
    def _of_any_release(cls, values: Any, info: ValidationInfo) -> Any:
        return _with_reason_of_ours(values, info)


class Wire(WireResult):
    """A wire."""

    state: WireState
    """How far it has come."""
    reason: WireReason | None
    """Why it is in this state; null where there is nothing to say."""
    reason_detail: str | None = None
    """The bank's own words for the reason, where it gave some."""
    history: list[WireStep]
    """Every state that it was in, oldest first."""
    created_at: f.UtcDateTime
    updated_at: f.UtcDateTime

    @model_validator(mode="before")
    @classmethod
    def _of_any_release(cls, values: Any, info: ValidationInfo) -> Any:
        return _with_reason_of_ours(values, info)


class WireEventData(Wire):
    """The wire as it was when this became true."""

    object: Literal["wire"] = "wire"
    customer_id: str
    """The business whose wire it is."""
