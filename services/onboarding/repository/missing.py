"""Which customers and persons that a provider holds this database does not know to be there."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from sqlalchemy import TextClause, text
from sqlalchemy.ext.asyncio import AsyncConnection

from libs.contracts.ids import parse_id
from libs.persistence.continuity import Compared

# Known: the record's creation is stored, or intended. Settled: the customer was not touched since a moment at which the
# provider had all of it; a search from the newest record back to such a one has seen all that came after.
_AT_IDENTITY = text(
    """
    SELECT id, bool_or(found.known) AS known, max(found.settled_at) AS settled_at
    FROM unnest(CAST(:ids AS uuid[])) AS id LEFT JOIN LATERAL (
        SELECT true AS known, CASE WHEN c.status <> 'pending' THEN c.updated_at END AS settled_at
        FROM customers c WHERE c.customer_id = id
            OR c.customer_id IN (SELECT p.customer_id FROM persons p WHERE p.person_id = id)
    ) AS found ON true GROUP BY id
    """
)
_AT_CORE = text(
    """
    SELECT id, bool_or(found.known) AS known, max(found.settled_at) AS settled_at
    FROM unnest(CAST(:ids AS uuid[])) AS id LEFT JOIN LATERAL (
        SELECT c.core_id IS NOT NULL OR EXISTS (SELECT FROM saga_steps s WHERE s.customer_id = c.customer_id
                AND s.tenant = c.tenant AND s.name LIKE 'create_core%') AS known,
            CASE WHEN c.core_id IS NOT NULL THEN c.updated_at END AS settled_at
        FROM customers c WHERE c.customer_id = id
            OR c.customer_id IN (SELECT p.customer_id FROM persons p WHERE p.person_id = id)
    ) AS found ON true GROUP BY id
    """
)


async def compare_at_identity(
    connection: AsyncConnection, ids: Sequence[str], life_began: datetime
) -> Compared:
    """Ids that the identity provider holds, with those of customers and persons here. See `continuity`."""
    return await _compare(connection, _AT_IDENTITY, ids, life_began)


async def compare_at_core(
    connection: AsyncConnection, ids: Sequence[str], life_began: datetime
) -> Compared:
    """Ids that core banking holds, with those of customers and persons here that were sent there."""
    return await _compare(connection, _AT_CORE, ids, life_began)


async def _compare(
    connection: AsyncConnection, statement: TextClause, ids: Sequence[str], life_began: datetime
) -> Compared:
    """Of any tenant: a provider holds the customers of all tenants and knows of none. An id that none of ours can look
    like names a record that was not made by this system.
    """
    ours = [known for known in map(parse_id, ids) if known is not None]
    rows = (await connection.execute(statement, {"ids": ours})).all()
    return Compared(
        missing=[str(row.id) for row in rows if not row.known],
        reaches_back=any(
            row.settled_at is not None and row.settled_at < life_began for row in rows
        ),
    )
