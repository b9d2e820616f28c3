"""The ids by which operators find a difference of a customer: its own, and its tenant where we know the customer."""

from __future__ import annotations

from libs.contracts.reconciliation import RecordedCustomer


def ids_of(customer_id: str, customer: RecordedCustomer | None) -> dict[str, str]:
    """`customer`: None when we hold none under this id, which a provider or a stored answer named."""
    ids = {"customer_id": customer_id}
    return ids if customer is None else ids | {"tenant": customer.tenant}
