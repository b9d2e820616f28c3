"""Wire policies: the limits of a customer's wires, and which of them wait for approval (interface §9)."""

from __future__ import annotations

from decimal import Decimal
from enum import StrEnum
from typing import Annotated

from pydantic import Field

from libs.contracts import fields as f
from libs.contracts.model import Command, Model

Count = Annotated[int, Field(ge=1, le=1_000_000)]
Hours = Annotated[int, Field(ge=1, le=8760)]


class WireLimit(StrEnum):
    """Which limit a wire would go beyond."""

    PER_WIRE = "per_wire"
    DAILY_AMOUNT = "daily_amount"
    DAILY_COUNT = "daily_count"


class SetWirePolicy(Command):
    """The whole policy: what is absent or null is "none"."""

    customer_id: f.FilterId
    per_wire_limit: f.WireAmount | None = None
    daily_limit: f.WireAmount | None = None
    daily_count: Count | None = None
    approval_threshold: f.WireAmount | None = None
    new_payee_hours: Hours | None = None


class GetWirePolicy(Command):
    customer_id: f.FilterId


class GetOwnWirePolicy(Command):
    pass


class WirePolicy(Model):
    """What applies to the customer's wires: the policy that its partner set, else the defaults, within the ceilings of
    the operator. Null: none. `updated_at`: when the partner set it; null for the defaults.
    """

    customer_id: str
    per_wire_limit: Decimal | None
    daily_limit: Decimal | None
    daily_count: int | None
    approval_threshold: Decimal | None
    new_payee_hours: int | None
    updated_at: f.UtcDateTime | None
