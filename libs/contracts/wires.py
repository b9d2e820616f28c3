"""Wires: money sent from an account to an external account of the same customer."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from enum import StrEnum
from typing import Annotated, Any

from pydantic import Field

from libs.contracts import fields as f
from libs.contracts.model import BrokenRule, Command, Model
from libs.contracts.periods import broken_period


class WireState(StrEnum):
    PENDING_APPROVAL = "pending_approval"
    PENDING_SUBMISSION = "pending_submission"
    SUBMITTED = "submitted"
    COMPLETED = "completed"
    REJECTED = "rejected"
    RETURNED = "returned"
    CANCELED = "canceled"


class SendWire(Command):
    sending_account_id: f.Text
    external_account_id: f.Text
    amount: f.WireAmount
    purpose: f.Purpose


class ListWires(Command):
    """`start_date` and `end_date` are days of `created_at` at the bank, both inclusive."""

    page: f.Page = 1
    limit: f.Limit = 50
    state: Annotated[WireState, Field(strict=False)] | None = None
    start_date: f.CalendarDate | None = None
    end_date: f.CalendarDate | None = None

    @classmethod
    def broken_rules(cls, values: Mapping[str, Any]) -> list[BrokenRule]:
        return broken_period(values)


class GetWire(Command):
    transaction_id: str


class CancelWire(Command):
    transaction_id: str


class ApproveWire(Command):
    transaction_id: str


class DeclineWire(Command):
    """`reason` stands in the wire's history as its comment."""

    transaction_id: str
    reason: f.Text


class WireResult(Model):
    """What was sent; `note` is the request's purpose."""

    transaction_id: str
    sending_account_id: str
    external_account_id: str
    amount: Decimal
    note: str


class WireStep(Model):
    """Arrival in a state. `reason` says why, where there is something to say.

    `by` is who did it: a subscription key, or `operator:<name>`; null for what came from the bank or by itself.
    `comment` is what they gave as their reason.
    """

    state: WireState
    at: f.UtcDateTime
    reason: str | None
    by: str | None = None
    comment: str | None = None


class Wire(WireResult):
    state: WireState
    reason: str | None
    history: list[WireStep]
    created_at: f.UtcDateTime
    updated_at: f.UtcDateTime


class WireEventData(Wire):
    """The wire as it was when this became true."""

    object: str = "wire"
    customer_id: str
