"""ACH requests."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import StringConstraints
from typing_extensions import TypeAliasType

from libs.contracts import fields as f
from libs.contracts.model import Command, Model

AchStatus = TypeAliasType("AchStatus", Literal["pending", "submitted", "settled", "returned"])
DecimalText = Annotated[str, StringConstraints(pattern=r"^[0-9]+\.[0-9]{2}$")]


class ListAchRequests(Command):
    account_id: str
    reference_id: f.FilterId | None = None


class AchRequest(Model):
    """`return_code` and `return_description` are NACHA's, null unless it was returned."""

    reference_id: str
    originating_account_id: str
    status: AchStatus
    amount: DecimalText
    return_code: str | None
    return_description: str | None
    created_at: f.UtcDateTime
    updated_at: f.UtcDateTime


class AchEventData(AchRequest):
    object: str = "ach"
    customer_id: str
