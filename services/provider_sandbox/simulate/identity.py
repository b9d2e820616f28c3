"""The identity provider decides."""

from __future__ import annotations

from services.provider_sandbox.database import Connection
from services.provider_sandbox.identity import records
from services.provider_sandbox.identity.verdicts import UNDECIDED, Decision
from services.provider_sandbox.operations import Body, Refusal, not_found

_LOCK_RECORDS = """
    SELECT * FROM identity_record WHERE customer_id = $1 ORDER BY identity_id FOR UPDATE
"""


class Decide(Body):
    customer_id: str
    decision: Decision


async def decide(connection: Connection, _: str, body: Decide) -> object:
    """Give every record of the customer that is still undecided the provider's verdict."""
    found = await connection.fetch(
        _LOCK_RECORDS,
        body.customer_id,
    )
    if not found:
        raise not_found("identity")
    undecided = [record for record in found if record["status"] in UNDECIDED]
    if not undecided:
        raise Refusal(409, "already_decided", "Nothing of this customer is undecided.")
    for record in undecided:
        await records.set_status(connection, record, body.decision)
    return {"decided": len(undecided)}
