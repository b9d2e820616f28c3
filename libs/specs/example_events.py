"""An example of each type of event."""

from __future__ import annotations

from typing import Any

from libs.contracts.events import EventType
from libs.specs import example_resources as r

_OF_THE_CUSTOMER = {"customer_id": r.CUSTOMER_ID}
_DATA: dict[str, dict[str, Any]] = {
    "customer": {
        **r.CUSTOMER,
        "business": r.BUSINESS,
        "accounts": [
            {"id": r.ACCOUNT_ID, "account_number": r.ACCOUNT_NUMBER[-4:], "status": "open"}
        ],
    },
    "person": {**r.PERSON, "business_customer_id": r.CUSTOMER_ID},
    "external_account": {**r.LINKED_EXTERNAL_ACCOUNT, **_OF_THE_CUSTOMER},
    "account": {**r.ACCOUNT, "account_number": r.ACCOUNT_NUMBER[-4:], **_OF_THE_CUSTOMER},
    "transaction": r.TRANSACTION_EVENT,
    "ach": {**r.ACH_REQUEST, **_OF_THE_CUSTOMER},
    "statement": {**r.STATEMENT_PERIOD, "account_id": r.ACCOUNT_ID, **_OF_THE_CUSTOMER},
    "deposit_locations": {
        "account_id": r.ACCOUNT_ID,
        **_OF_THE_CUSTOMER,
        "as_of_date": r.DAY,
        "locations": 1,
        "balance": 25000.00,
    },
    "wire": {**r.WIRE, **_OF_THE_CUSTOMER},
    "webhook_subscription": {**r.SUBSCRIPTION, **_OF_THE_CUSTOMER},
}
"""By kind."""


_SENT = (r.ASKED_FOR, r.SUBMITTED)

_DIFFERENCES: dict[str, dict[str, Any]] = {
    "customer.created": {"status": "pending", "accounts": [], "external_bank_accounts": []},
    "customer.denied": {"status": "denied", "accounts": [], "external_bank_accounts": []},
    "customer.pending_review": {"status": "pending_review", "accounts": []},
    "customer.documents_required": {
        "status": "awaiting_documents",
        "issues": [
            {
                "code": "documents_required",
                "detail": "Documents that prove the identity are needed.",
                "person_id": r.PERSON_ID,
            }
        ],
        "accounts": [],
    },
    "account.restricted": {"is_restricted": True},
    "account.closed": {"status": "closed", "close_date": r.SENT_AT},
    "ach.created": {"status": "pending"},
    "ach.submitted": {"status": "submitted"},
    "ach.returned": {
        "status": "returned",
        "return_code": "R01",
        "return_description": "Insufficient funds",
    },
    "wire.created": r.wire(r.ASKED_FOR),
    "wire.approval_requested": r.wire(r.WAITING),
    "wire.approved": r.wire(r.WAITING, r.step("pending_submission", by=r.APPROVER)),
    "wire.completed": r.wire(*_SENT, r.step("completed", at=r.ENDED_AT)),
    "wire.rejected": r.wire(
        r.ASKED_FOR, r.step("rejected", at=r.ENDED_AT, reason="insufficient_funds")
    ),
    "wire.returned": r.wire(
        *_SENT,
        r.step("completed", at=r.ENDED_AT),
        r.step(
            "returned",
            at="2026-03-04T16:00:00.000000Z",
            reason="returned",
            reason_detail="Account closed.",
        ),
    ),
    "wire.canceled": r.DECLINED_WIRE,
    "webhook_subscription.unavailable": {"status": "unavailable"},
}


def event_example(event: EventType) -> dict[str, Any]:
    """An event of this type.

    Raises:
        LookupError: there is no example of its kind.
    """
    if event.kind not in _DATA:
        raise LookupError(
            f"{event.name} has no example: add {event.kind!r} to `_DATA` in {__name__}"
        )
    return r.event(event.name, {**_DATA[event.kind], **_DIFFERENCES.get(event.name, {})})
