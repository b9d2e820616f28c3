"""The identity provider's list of customers, canceled ones included."""

from __future__ import annotations

from services.provider_sandbox.database import Row
from services.provider_sandbox.encoding import stored
from services.provider_sandbox.listing import Listing, plain


def _customer(row: Row) -> dict[str, object]:
    return {**plain(row), "fields": stored(row["fields"])}


CUSTOMERS = Listing(
    "customers",
    _customer,
    page="""
        SELECT sequence, identity_id, customer_id, kind, business_customer_id, status, version, fields
        FROM identity_record WHERE sequence > $2 ORDER BY sequence LIMIT $1
    """,
    newest="""
        SELECT sequence, identity_id, customer_id, kind, business_customer_id, status, version, fields
        FROM identity_record WHERE sequence < $2 ORDER BY sequence DESC LIMIT $1
    """,
    by_id="""
        WITH chosen AS MATERIALIZED (
            SELECT sequence, identity_id, customer_id, kind, business_customer_id, status, version, fields
            FROM identity_record
            WHERE identity_id = ANY($3)
        )
        SELECT * FROM chosen WHERE sequence > $2 ORDER BY sequence LIMIT $1
    """,
    by_customer="""
        WITH chosen AS MATERIALIZED (
            SELECT sequence, identity_id, customer_id, kind, business_customer_id, status, version, fields
            FROM identity_record
            WHERE customer_id = ANY($3)
        )
        SELECT * FROM chosen WHERE sequence > $2 ORDER BY sequence LIMIT $1
    """,
)
