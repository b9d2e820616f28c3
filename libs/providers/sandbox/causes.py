"""What the sandbox does when it is told, by the events that come of it."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

from libs.providers.causes import Cause

AMOUNT = Decimal("12.50")
RETURN_CODE = "R01"
"""Insufficient funds."""


def _decided(decision: str) -> Cause:
    return Cause(
        "customer_id",
        "/simulate/identity/decisions",
        lambda customer_id: {
            "customer_id": customer_id,
            "decision": decision,
            "with_persons": True,
        },
    )


def _this_month(account_id: str) -> dict[str, Any]:
    today = datetime.now(UTC).date()
    return {"account_id": account_id, "year": today.year, "month": today.month}


CAUSES: Mapping[str, Cause] = {
    "customer.approved": _decided("approved"),
    "customer.denied": _decided("denied"),
    "customer.pending_review": _decided("pending_review"),
    "customer.documents_required": _decided("awaiting_documents"),
    "account.restricted": Cause("account_id", "/simulate/accounts/{id}/restrict"),
    "account.unrestricted": Cause("account_id", "/simulate/accounts/{id}/unrestrict"),
    "account.closed": Cause("account_id", "/simulate/accounts/{id}/close"),
    "transaction.created": Cause(
        "account_id",
        "/simulate/deposits",
        lambda account_id: {
            "account_id": account_id,
            "amount": AMOUNT,
            "counterparty_name": "bankside trigger",
        },
    ),
    "wire.completed": Cause("transaction_id", "/simulate/wires/{id}/complete"),
    "wire.rejected": Cause("transaction_id", "/simulate/wires/{id}/reject"),
    "wire.returned": Cause("transaction_id", "/simulate/wires/{id}/return"),
    "ach.created": Cause(
        "account_id",
        "/simulate/ach",
        lambda account_id: {"account_id": account_id, "amount": AMOUNT},
    ),
    "ach.submitted": Cause("reference_id", "/simulate/ach/{id}/submit"),
    "ach.settled": Cause("reference_id", "/simulate/ach/{id}/settle"),
    "ach.returned": Cause(
        "reference_id", "/simulate/ach/{id}/return", lambda _: {"return_code": RETURN_CODE}
    ),
    "statement.available": Cause("account_id", "/simulate/statements", _this_month),
    "deposit_locations.updated": Cause(
        "account_id",
        "/simulate/deposit-locations",
        lambda account_id: {"account_id": account_id},
    ),
}
