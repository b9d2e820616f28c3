"""ACH requests."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import StringConstraints

from libs.contracts import fields as f
from libs.contracts.model import Command, Model
from libs.contracts.named import Named

AchStatus = Annotated[
    Literal["pending", "submitted", "settled", "returned"],
    Named("AchStatus", "How far an ACH request has come."),
]
DecimalText = Annotated[str, StringConstraints(pattern=r"^[0-9]+\.[0-9]{2}$")]


class ListAchRequests(Command):
    """List an account's ACH requests, newest first."""

    account_id: str
    reference_id: f.FilterId | None = None
    """Only the request with this reference."""


class AchRequest(Model):
    """An ACH request. `return_code` and `return_description` are null unless it was returned."""

    reference_id: str
    """Its reference at the bank."""
    originating_account_id: str
    """The account that originated it."""
    status: AchStatus
    """How far it has come."""
    amount: DecimalText
    """US dollars, as a string of a decimal number with two places: "1250.75". It has no sign: whether money leaves the
    account or comes in is in `debit_credit_flag` of the account's transaction.
    """
    return_code: str | None
    """Nacha's return code, such as `R01`; `REJECTED` or `CANCELED` for a request that the bank never sent."""
    return_description: str | None
    """What the return code means."""
    created_at: f.UtcDateTime
    updated_at: f.UtcDateTime


class AchEventData(AchRequest):
    """An ACH request, in events."""

    object: Literal["ach"] = "ach"
    customer_id: str
