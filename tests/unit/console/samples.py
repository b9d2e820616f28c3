"""Values as services answer them."""

from __future__ import annotations

from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

from libs.contracts.customers import CustomerStatus
from libs.contracts.operating.commands import OpenCommand
from libs.contracts.operating.customers import OperatorCustomer, OperatorCustomerSummary
from libs.contracts.operating.pages import Listed
from libs.contracts.operating.restores import Restore
from libs.contracts.operating.saga_steps import SagaStep
from libs.contracts.operating.webhooks import LIST_EVENTS
from libs.contracts.operating.wires import (
    GET_WIRE,
    LIST_WIRES,
    RESOLVE_WIRE,
    OperatorWire,
    OperatorWireDetail,
    WireAtProvider,
)
from libs.contracts.principal import Role
from libs.contracts.wires import WireState, WireStep
from tests.unit.console.gateway_double import AT, GatewayDouble

WIRE_ID = "019aacf2-1b3e-7000-8000-000000000001"
CUSTOMER_ID = "019aacf2-1b3e-7000-8000-000000000002"
RESOLVE = f"/wires/{WIRE_ID}/resolve"
"""The form that resolves the wire."""


def wire(**changes: Any) -> OperatorWire:
    return OperatorWire(**_wire_values() | changes)


def wire_detail(**changes: Any) -> OperatorWireDetail:
    values = {
        **_wire_values(),
        "send": None,
        "request": None,
        "provider": WireAtProvider(
            found=True, id="wt_1", state=WireState.SUBMITTED, amount=Decimal("12.50")
        ),
        "provider_error": None,
    }
    return OperatorWireDetail(**values | changes)


def command() -> OpenCommand:
    return OpenCommand(
        service="payments",
        command_id=WIRE_ID,
        operation="payments.send_wire",
        ordering_key=None,
        tenant="acme",
        request_id="req_1",
        accepted_at=AT,
        attempts=3,
        faults=0,
        last_error="unavailable",
        next_attempt_at=None,
        is_driven=False,
        parked_at=AT,
        parked_because="It failed too often.",
    )


def customer() -> OperatorCustomerSummary:
    return OperatorCustomerSummary(
        customer_id=CUSTOMER_ID,
        tenant="acme",
        status=CustomerStatus.APPROVED,
        business_name="Bakery",
        dba=None,
        created_at=AT,
        updated_at=AT,
    )


def saga_step() -> SagaStep:
    """Of unknown outcome."""
    return SagaStep(
        saga_id=WIRE_ID,
        step="core_customer",
        tenant="acme",
        customer_id=CUSTOMER_ID,
        operation="onboarding.onboard_customer",
        compensation=False,
        state="intended",
        outcome_unknown=True,
        refusal_reason=None,
        refusal_code=None,
        intended_at=AT,
        first_sent_at=AT,
        last_asked_at=AT,
        recorded_at=None,
        settled_at=None,
        resolution=None,
        resolved_by=None,
        resolution_reason=None,
        resolved_at=None,
        command_id=None,
        command=None,
    )


def customer_with(*steps: SagaStep) -> OperatorCustomer:
    values: dict[str, Any] = dict.fromkeys(OperatorCustomer.model_fields)
    return OperatorCustomer.model_construct(
        **values | {"customer_id": CUSTOMER_ID, "steps": [*steps]}
    )


def _wire_values() -> dict[str, Any]:
    return {
        "transaction_id": WIRE_ID,
        "sending_account_id": "acc_1",
        "external_account_id": "ext_1",
        "amount": Decimal("12.50"),
        "note": "Invoice 7",
        "state": WireState.PENDING_SUBMISSION,
        "reason": None,
        "history": [
            WireStep(state=WireState.PENDING_SUBMISSION, at=AT, reason=None),
        ],
        "created_at": AT,
        "updated_at": AT + timedelta(minutes=1),
        "tenant": "acme",
        "customer_id": CUSTOMER_ID,
        "outcome_unknown": True,
    }


NEXT = "WyIyMDI2LTExLTIzVDAxOjAyOjAzWiIsIjEiXQ"
"""Where a list goes on."""


def gateway(role: Role = Role.OPERATOR) -> GatewayDouble:
    """One with a page of wires, of which there are more."""
    found = GatewayDouble(role)
    found.answer(LIST_WIRES, Listed(items=[wire()], next=NEXT))
    found.answer(LIST_EVENTS, Listed(items=[]))
    found.answer(GET_WIRE, wire_detail())
    found.answer(RESOLVE_WIRE, wire())
    return found


def restore(since: datetime, *missing: str) -> Restore:
    return Restore(
        service="payments", since=since, missing=len(missing), missing_records=[*missing]
    )
