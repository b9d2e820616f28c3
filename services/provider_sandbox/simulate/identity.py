"""The identity provider decides."""

from __future__ import annotations

from services.provider_sandbox.database import Connection
from services.provider_sandbox.identity import records
from services.provider_sandbox.identity.verdicts import UNDECIDED, Decision
from services.provider_sandbox.operations import Body, Refusal, not_found

_LOCK_RECORDS = """
    SELECT * FROM identity_record
    WHERE customer_id = $1 OR $2 AND business_customer_id = $1
    ORDER BY identity_id FOR UPDATE
"""
_UNDECIDED_PERSONS = """
    SELECT DISTINCT customer_id FROM identity_record
    WHERE business_customer_id = $1 AND status = ANY($2) ORDER BY customer_id
"""


class Decide(Body):
    customer_id: str
    """Of a business or a person."""
    decision: Decision
    with_persons: bool = False
    """Decide the persons of the business as well."""


async def decide(connection: Connection, _: str, body: Decide) -> object:
    """Give every record of the customer that is still undecided the provider's verdict."""
    found = await connection.fetch(_LOCK_RECORDS, body.customer_id, body.with_persons)
    if not found:
        raise not_found("identity")
    undecided = [record for record in found if record["status"] in UNDECIDED]
    if not undecided:
        persons = await connection.fetch(_UNDECIDED_PERSONS, body.customer_id, UNDECIDED)
        ids = ", ".join(person["customer_id"] for person in persons)
        message = (
            f"Of this customer only persons are undecided: {ids}."
            if ids
            else "Nothing of this customer is undecided."
        )
        raise Refusal(409, "already_decided", message)
    for record in undecided:
        await records.set_status(connection, record, body.decision)
    return {"decided": len(undecided)}
