"""Wires as callers and receivers of events see them."""

from __future__ import annotations

from typing import Any

from libs.contracts import wires as contract
from libs.contracts.events import EVENT_TYPES, Event, new_event
from services.payments.models import WireRecord
from services.payments.states import event_of


def wire_result(wire: WireRecord) -> contract.WireResult:
    return contract.WireResult(**_result(wire))


def wire_view(wire: WireRecord) -> contract.Wire:
    return contract.Wire(**_wire(wire))


def operator_wire(wire: WireRecord) -> dict[str, Any]:
    """The members of `OperatorWire`."""
    return {
        **_wire(wire),
        "tenant": wire.tenant,
        "customer_id": wire.customer_id,
        "outcome_unknown": wire.is_unknown,
    }


def wire_event(wire: WireRecord) -> Event:
    """The event of the wire's last step."""
    return new_event(
        EVENT_TYPES[event_of(wire)],
        contract.WireEventData(**_wire(wire), customer_id=wire.customer_id),
        tenant=wire.tenant,
        customer_id=wire.customer_id,
        resource_id=str(wire.transaction_id),
        sequence=wire.sequence,
        at=wire.updated_at,
    )


def _result(wire: WireRecord) -> dict[str, Any]:
    return {
        "transaction_id": str(wire.transaction_id),
        "sending_account_id": wire.sending_account_id,
        "external_account_id": wire.external_account_id,
        "amount": wire.amount,
        "note": wire.purpose,
    }


def _wire(wire: WireRecord) -> dict[str, Any]:
    return {
        **_result(wire),
        "state": wire.state,
        "reason": wire.reason,
        "reason_detail": wire.reason_detail,
        "history": [
            contract.WireStep(
                state=step.state,
                at=step.at,
                reason=step.reason,
                reason_detail=step.reason_detail,
                by=step.by,
                comment=step.comment,
            )
            for step in wire.history
        ],
        "created_at": wire.created_at,
        "updated_at": wire.updated_at,
    }
