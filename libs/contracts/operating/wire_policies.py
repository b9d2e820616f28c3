"""Wire policies as operators see them."""

from __future__ import annotations

from decimal import Decimal
from http import HTTPMethod

from libs.contracts import fields as f
from libs.contracts.model import Model
from libs.contracts.operating.pages import Listed, ListPage
from libs.contracts.operation import Operation, declared_in
from libs.contracts.principal import Role


class ListOperatorWirePolicies(ListPage):
    """By when they were set."""

    tenant: f.FilterId | None = None
    customer_id: f.ResourceId | None = None


class OperatorWirePolicy(Model):
    """What a partner has set for its customer; null is none. Ceilings are not taken into account."""

    customer_id: str
    tenant: str
    per_wire_limit: Decimal | None
    """US dollars that one wire may have at most."""
    daily_limit: Decimal | None
    """US dollars that the wires of one day may have at most, together."""
    daily_count: int | None
    """How many wires one day may have at most."""
    approval_threshold: Decimal | None
    """Wires of this amount or more wait for approval, in US dollars."""
    new_payee_hours: int | None
    """Wires to an external account that was linked less than this many hours ago wait for approval."""
    updated_at: f.UtcDateTime


LIST_WIRE_POLICIES = Operation(
    name="payments.operator_list_wire_policies",
    method=HTTPMethod.GET,
    path="/operator/wire-policies",
    role=Role.VIEWER,
    command=ListOperatorWirePolicies,
    reply=Listed[OperatorWirePolicy],
    message="Wire policies found",
    summary="List the wire policies that partners have set for their customers",
)

OPERATIONS = declared_in(globals(), Operation)
