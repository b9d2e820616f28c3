"""Wire policies: the limits of a customer's wires, and which of them wait for approval (interface §9)."""

from __future__ import annotations

from decimal import Decimal
from enum import StrEnum
from typing import Annotated

from pydantic import Field

from libs.contracts import fields as f
from libs.contracts.ids import OurId
from libs.contracts.model import Command, Model

Count = Annotated[f.WholeNumber, Field(ge=0, le=1_000_000)]
Hours = Annotated[f.WholeNumber, Field(ge=1, le=8760)]


class WireLimit(StrEnum):
    """Which limit a wire would go beyond."""

    PER_WIRE = "per_wire"
    DAILY_AMOUNT = "daily_amount"
    DAILY_COUNT = "daily_count"


class SetWirePolicy(Command):
    """Set the limits of a customer's wires, and which of them wait for approval. It is the whole policy: what is absent
    or null means "none". The operator's ceilings bound it.
    """

    customer_id: Annotated[f.ResourceId, OurId()]
    """The business's `customer_id`, from onboarding."""
    per_wire_limit: f.WireAmount | None = None
    """The most that one wire may be, in US dollars."""
    daily_limit: f.WireAmount | None = None
    """The most that the wires of one day of the bank may add up to, in US dollars."""
    daily_count: Count | None = None
    """The most wires of one day of the bank. With 0 each wire is refused, and each approval."""
    approval_threshold: f.WireAmount | None = None
    """Wires of this amount or more wait for approval, in US dollars."""
    new_payee_hours: Hours | None = None
    """Wires to an external account that was linked less than this many hours ago wait for approval."""


class GetWirePolicy(Command):
    """Get what applies to a customer's wires: its policy, else the defaults, within the operator's ceilings."""

    customer_id: Annotated[f.ResourceId, OurId()]
    """The business's `customer_id`, from onboarding."""


class GetOwnWirePolicy(Command):
    """Get what applies to the wires of this customer: the policy that its partner has set, else the defaults."""


class WirePolicy(Model):
    """What applies to a customer's wires: the policy that its partner set, else the defaults, within the ceilings of
    the operator. Null: none.
    """

    customer_id: str
    """The business."""
    per_wire_limit: Decimal | None
    """The most that one wire may be, in US dollars."""
    daily_limit: Decimal | None
    """The most that the wires of one day of the bank may add up to, in US dollars."""
    daily_count: int | None
    """The most wires of one day of the bank. With 0 each wire is refused, and each approval."""
    approval_threshold: Decimal | None
    """Wires of this amount or more wait for approval, in US dollars."""
    new_payee_hours: int | None
    """Wires to an external account that was linked less than this many hours ago wait for approval."""
    updated_at: f.UtcDateTime | None
    """When the partner set it; null for the defaults."""
