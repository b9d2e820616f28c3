"""Events as they were recorded, scoped by who may see them: a customer its own, a partner those of all its customers.

Positions are in commit order: whoever reads those after the last one it saw misses none.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from typing import Any
from uuid import UUID

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

from libs.contracts.ids import parse_id
from libs.contracts.principal import Principal

EVENT_PREFIX = "evt_"
_PLANNED_ONCE = text("SELECT set_config('plan_cache_mode', 'force_generic_plan', true)")
SEEN_BY_PARTNER = "(e.customer_id IS NULL OR split_part(e.type, '.', 1) <> 'webhook_subscription')"
"""Of an event `e` of its tenant. What is told of a customer's subscription is that customer's alone: its URL may hold a
secret.
"""


@dataclass(frozen=True, slots=True)
class Recorded:
    position: int
    body: bytes = field(repr=False)


def parse_event_id(text: str) -> tuple[date, UUID] | None:
    """The UTC day of its time and the UUID of `evt_<uuidv7>`; None for anything else."""
    event_id = parse_id(text.removeprefix(EVENT_PREFIX)) if text.startswith(EVENT_PREFIX) else None
    if event_id is None or event_id.version != 7:
        return None
    try:
        return datetime.fromtimestamp((event_id.int >> 80) / 1000, UTC).date(), event_id
    except (ValueError, OverflowError):
        return None


async def find(connection: AsyncConnection, principal: Principal, event_id: str) -> Recorded | None:
    """The event, when it is kept and the principal's."""
    parsed = parse_event_id(event_id)
    if parsed is None:
        return None
    day, uuid = parsed
    found = await connection.execute(
        text(
            "SELECT position, body FROM event e"  # noqa: S608 - constants
            f" WHERE day = :day AND id = :id AND {_seen_by(principal)}"
        ),
        {**_viewer(principal), "day": day, "id": uuid},
    )
    row = found.first()
    return None if row is None else Recorded(*row)


async def following(
    connection: AsyncConnection,
    principal: Principal,
    *,
    after: int,
    types: Collection[str] | None,
    limit: int,
) -> list[bytes]:
    """The bodies of the next events after a position, the oldest first.

    Args:
        types: only of these types; None for all.
    """
    values = {**_viewer(principal), "after": after, "limit": limit}
    # Planned anew for each page, over the partitions of all days, a page would cost PostgreSQL twice as much.
    await connection.execute(_PLANNED_ONCE)
    kept = f"{_seen_by(principal)} AND e.position > :after"
    if types is None:
        statement = f"SELECT body FROM event e WHERE {kept} ORDER BY position LIMIT :limit"  # noqa: S608 - constants
    else:
        # The next of each type, by an index that has them in order: a rare type costs no walk over the others.
        statement = f"""
            SELECT found.body FROM unnest(CAST(:types AS text[])) AS wanted (type) CROSS JOIN LATERAL (
                SELECT e.position, e.body FROM event e WHERE {kept} AND e.type = wanted.type
                ORDER BY e.position LIMIT :limit
            ) AS found ORDER BY found.position LIMIT :limit
        """  # noqa: S608 - constants
        values["types"] = sorted(types)
    rows = await connection.execute(text(statement), values)
    return list(rows.scalars())


def _viewer(principal: Principal) -> dict[str, Any]:
    who = {"tenant": principal.tenant}
    return who | {"customer_id": principal.customer_id} if principal.customer_id else who


def _seen_by(principal: Principal) -> str:
    scope = "e.customer_id = :customer_id" if principal.customer_id else SEEN_BY_PARTNER
    return f"e.tenant = :tenant AND {scope}"
