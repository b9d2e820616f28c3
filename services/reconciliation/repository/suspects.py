"""Suspects: records that seem to differ or are in flight. A run looks at each of them again.

Suspects that a run has left are the next one's: what the earlier run found of them does not count there.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from uuid import UUID

from sqlalchemy import (
    Double,
    Interval,
    Text,
    any_,
    bindparam,
    case,
    cast,
    delete,
    func,
    select,
    true,
    update,
)
from sqlalchemy.dialects.postgresql import ARRAY, insert

from libs.persistence.async_engine import AsyncConnection
from libs.persistence.tables import UUID_TYPE
from services.reconciliation.tables import suspect as table

_NOW = func.clock_timestamp()
_KEYS = bindparam("keys", type_=ARRAY(Text))
_OF_COMPARISON = table.c.comparison == bindparam("of_comparison")

_ADD = (
    insert(table)
    .from_select(
        ["comparison", "key"],
        select(bindparam("comparison", type_=Text), func.unnest(_KEYS)),
    )
    .on_conflict_do_nothing()
)
_added = (
    func.unnest(bindparam("comparisons", type_=ARRAY(Text)), _KEYS)
    .table_valued("comparison", "key")
    .render_derived(name="added")
)
_ADD_OF_SEVERAL = (
    insert(table)
    .from_select(["comparison", "key"], select(_added.c.comparison, _added.c.key))
    .on_conflict_do_nothing()
)
_IS_OF_RUN = table.c.run_id == bindparam("of_run", type_=UUID_TYPE)
_candidate = (
    func.unnest(bindparam("comparisons", type_=ARRAY(Text)))
    .table_valued("comparison")
    .render_derived(name="candidate")
)
# By comparison, so that suspects of others, such as one that pauses, are not walked over.
_first = (
    select(table.c.due_at)
    .where(table.c.comparison == _candidate.c.comparison)
    .order_by(table.c.due_at)
    .limit(1)
    .lateral("first")
)
_longest_due = (
    select(_candidate.c.comparison)
    .select_from(_candidate.join(_first, true()))
    .order_by(_first.c.due_at)
    .limit(1)
    .scalar_subquery()
)
_DUE = (
    select(
        table.c.comparison,
        table.c.key,
        case((_IS_OF_RUN, table.c.looks), else_=0).label("looks"),
        case((_IS_OF_RUN, table.c.found), else_=cast([], ARRAY(Text))).label("found"),
        cast(func.extract("epoch", table.c.due_at - _NOW), Double).label("wait_seconds"),
    )
    .where(table.c.comparison == _longest_due)
    .order_by(table.c.due_at)
    .limit(bindparam("limit"))
)
# The fingerprints of each key travel as one text, since PostgreSQL has no arrays of arrays of several lengths.
_again = (
    func.unnest(_KEYS, bindparam("fingerprints", type_=ARRAY(Text)))
    .table_valued("key", "fingerprints")
    .render_derived(name="again")
)
_LOOK_AGAIN = (
    update(table)
    .where(_OF_COMPARISON, table.c.key == _again.c.key)
    .values(
        due_at=_NOW + bindparam("pause", type_=Interval),
        looks=case((_IS_OF_RUN, table.c.looks + 1), else_=1),
        run_id=bindparam("of_run", type_=UUID_TYPE),
        found=func.string_to_array(_again.c.fingerprints, ","),
    )
)
_REMOVE = delete(table).where(_OF_COMPARISON, table.c.key == any_(_KEYS))


@dataclass(frozen=True, slots=True)
class Suspect:
    """A key that the run looks at again: it seemed to differ, or was in flight.

    Args:
        looks: how often the run has looked at it.
        found: fingerprints of the differences that the last look found.
    """

    key: str
    looks: int
    found: frozenset[str]


@dataclass(frozen=True, slots=True)
class Suspects:
    """Suspects of one comparison that are due, or how long until the first one is."""

    comparison: str
    due: Sequence[Suspect]
    wait_seconds: float


async def add(connection: AsyncConnection, comparison: str, keys: Sequence[str]) -> None:
    """Have both sides of these read afresh. Keys that are suspects already stay as they are."""
    await connection.execute(_ADD, {"comparison": comparison, "keys": list(keys)})


async def add_of_several(connection: AsyncConnection, keys: Sequence[tuple[str, str]]) -> None:
    """As `add`. Args: keys: each after its comparison."""
    comparisons = [comparison for comparison, _ in keys]
    await connection.execute(
        _ADD_OF_SEVERAL, {"comparisons": comparisons, "keys": [key for _, key in keys]}
    )


async def find_due(
    connection: AsyncConnection,
    run_id: UUID,
    limit: int,
    comparisons: Iterable[str],
    *,
    longest_seconds: float,
) -> Suspects | None:
    """Those of one of the comparisons, the one whose suspect has been due longest; None when none is left.

    Args:
        longest_seconds: for which a suspect may wait. One that is due later got its time before PostgreSQL's clock was
            set back: it is due now.
    """
    values = {"limit": limit, "comparisons": list(comparisons), "of_run": run_id}
    rows = (await connection.execute(_DUE, values)).all()
    if not rows:
        return None
    due = [
        Suspect(row.key, row.looks, frozenset(row.found))
        for row in rows
        if not 0 < row.wait_seconds <= longest_seconds
    ]
    return Suspects(rows[0].comparison, due, max(0.0, rows[0].wait_seconds))


async def look_again(
    connection: AsyncConnection,
    run_id: UUID,
    comparison: str,
    found: Mapping[str, Iterable[str]],
    seconds: float,
) -> None:
    """Have the suspects looked at once more after `seconds`.

    Args:
        found: by key, the fingerprints of the differences that this look found.
    """
    await connection.execute(
        _LOOK_AGAIN,
        {
            "of_comparison": comparison,
            "of_run": run_id,
            "keys": list(found),
            "fingerprints": [",".join(fingerprints) for fingerprints in found.values()],
            "pause": timedelta(seconds=seconds),
        },
    )


async def remove(connection: AsyncConnection, comparison: str, keys: Sequence[str]) -> None:
    await connection.execute(_REMOVE, {"of_comparison": comparison, "keys": list(keys)})
