"""The service's own tables, beside the outbox and the feed cursor."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

_COUNT_ON = text(
    """
    INSERT INTO resource_sequences AS held (kind, resource_id, sequence)
    SELECT * FROM unnest(CAST(:kinds AS text[]), CAST(:ids AS text[]), CAST(:counts AS bigint[])) AS n (kind, id, count)
    ORDER BY n.kind, n.id
    ON CONFLICT (kind, resource_id) DO UPDATE SET sequence = held.sequence + excluded.sequence
    RETURNING kind, resource_id, sequence
    """
)

Resource = tuple[str, str]
"""Its kind and its id."""


async def next_sequences(connection: AsyncConnection, resources: Sequence[Resource]) -> list[int]:
    """1, 2, 3 … per resource, for each in turn; one may come several times. Their rows stay locked until the
    transaction ends (interface §8).
    """
    counts = Counter(resources)
    rows = await connection.execute(
        _COUNT_ON,
        {
            "kinds": [kind for kind, _ in counts],
            "ids": [resource_id for _, resource_id in counts],
            "counts": list(counts.values()),
        },
    )
    given = {
        (kind, resource_id): last - counts[kind, resource_id] for kind, resource_id, last in rows
    }
    sequences = []
    for resource in resources:
        given[resource] += 1
        sequences.append(given[resource])
    return sequences
