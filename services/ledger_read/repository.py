"""The sequence of each resource's events, and the state that the last one reported."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from sqlalchemy import BigInteger, Text, bindparam, func, select
from sqlalchemy.dialects.postgresql import ARRAY, insert

from libs.persistence.async_engine import AsyncConnection
from services.ledger_read.tables import reported_state
from services.ledger_read.tables import resource_sequences as table

_more = (
    func.unnest(
        bindparam("kinds", type_=ARRAY(Text)),
        bindparam("ids", type_=ARRAY(Text)),
        bindparam("counts", type_=ARRAY(BigInteger)),
    )
    .table_valued("kind", "resource_id", "count")
    .render_derived(name="more")
)
# In order of their keys, so that two transactions wait for one another and never for each other.
_INSERT = insert(table).from_select(
    ["kind", "resource_id", "sequence"],
    select(_more.c.kind, _more.c.resource_id, _more.c["count"]).order_by(
        _more.c.kind, _more.c.resource_id
    ),
)
_ADVANCE = _INSERT.on_conflict_do_update(
    index_elements=[table.c.kind, table.c.resource_id],
    set_={"sequence": table.c.sequence + _INSERT.excluded.sequence},
).returning(table.c.kind, table.c.resource_id, table.c.sequence)

Resource = tuple[str, str]
"""A resource's kind and its id."""


_NOTE_STATE = insert(reported_state)
_NOTE_NEW_STATE = _NOTE_STATE.on_conflict_do_update(
    index_elements=[reported_state.c.kind, reported_state.c.resource_id],
    set_={"state": _NOTE_STATE.excluded.state},
    where=reported_state.c.state != _NOTE_STATE.excluded.state,
)


_REPORTED_STATE = select(reported_state.c.state).where(
    reported_state.c.kind == bindparam("kind"),
    reported_state.c.resource_id == bindparam("resource_id"),
)


async def last_state(connection: AsyncConnection, resource: Resource) -> str | None:
    """The state that the resource's last event reported; None: none did."""
    kind, resource_id = resource
    found = await connection.execute(_REPORTED_STATE, {"kind": kind, "resource_id": resource_id})
    return found.scalar_one_or_none()


async def note_state(connection: AsyncConnection, resource: Resource, state: str) -> bool:
    """Whether an event that reports this state reports another one than the last event did."""
    kind, resource_id = resource
    noted = await connection.execute(
        _NOTE_NEW_STATE, {"kind": kind, "resource_id": resource_id, "state": state}
    )
    return noted.rowcount == 1


async def next_sequences(connection: AsyncConnection, resources: Sequence[Resource]) -> list[int]:
    """The next numbers, 1, 2, 3 … per resource, in the order of `resources`, which may name one several times.

    Rows of the resources stay locked until the transaction ends (interface §8).
    """
    counts = Counter(resources)
    rows = await connection.execute(
        _ADVANCE,
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
