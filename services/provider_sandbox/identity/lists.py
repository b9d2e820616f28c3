"""The identity provider's list of customers, canceled ones included."""

from __future__ import annotations

from services.provider_sandbox.database import Row
from services.provider_sandbox.encoding import stored
from services.provider_sandbox.listing import Listing, plain


def _customer(row: Row) -> dict[str, object]:
    return {**plain(row), "fields": stored(row["fields"])}


CUSTOMERS = Listing(
    "customers",
    "SELECT sequence, identity_id, customer_id, kind, business_customer_id, status, version, fields"
    " FROM identity_record",
    _customer,
    by_id="identity_id = ANY($3)",
    by_customer="customer_id = ANY($3)",
    has_newest=True,
)
