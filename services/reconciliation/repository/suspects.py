"""Suspects: records that seem to differ or are in flight. A run looks at each of them again."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta

from sqlalchemy import Double, Interval, Text, any_, bindparam, cast, delete, func, select, update
from sqlalchemy.dialects.postgresql import ARRAY, insert

from libs.persistence.async_engine import AsyncConnection
from services.reconciliation.repository.differences import STANDING_KEYS
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
# The differences that stand are looked at again in every run, also when its scans do not meet them.
_ADD_STANDING = (
    insert(table).from_select(["comparison", "key"], STANDING_KEYS).on_conflict_do_nothing()
)
# A run that was given up leaves suspects whose records no later scan reads again: bookmarks have moved past them.
_BEGIN_AGAIN = update(table).values(due_at=_NOW, looks=0, found=[])
_CANDIDATES = table.c.comparison == any_(bindparam("comparisons", type_=ARRAY(Text)))
_longest_due = (
    select(table.c.comparison)
    .where(_CANDIDATES)
    .order_by(table.c.due_at)
    .limit(1)
    .scalar_subquery()
)
_DUE = (
    select(
        table.c.comparison,
        table.c.key,
        table.c.looks,
        table.c.found,
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
        looks=table.c.looks + 1,
        found=func.string_to_array(_again.c.fingerprints, ","),
    )
)
_REMOVE = delete(table).where(_OF_COMPARISON, table.c.key == any_(_KEYS))


@dataclass(frozen=True, slots=True)
class Suspect:
    """Args:
    looks: how often it was looked at.
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


async def begin_run(connection: AsyncConnection) -> None:
    """Look again at all suspects that a run before has left, and at all differences that stand."""
    await connection.execute(_BEGIN_AGAIN)
    await connection.execute(_ADD_STANDING)


async def add(connection: AsyncConnection, comparison: str, keys: Sequence[str]) -> None:
    """Have both sides of these read afresh. Keys that are suspects already stay as they are."""
    await connection.execute(_ADD, {"comparison": comparison, "keys": list(keys)})


async def find_due(
    connection: AsyncConnection, limit: int, comparisons: Iterable[str]
) -> Suspects | None:
    """Those of one of the comparisons, the one whose suspect has been due longest; None when none is left."""
    values = {"limit": limit, "comparisons": list(comparisons)}
    rows = (await connection.execute(_DUE, values)).all()
    if not rows:
        return None
    due = [
        Suspect(row.key, row.looks, frozenset(row.found)) for row in rows if row.wait_seconds <= 0
    ]
    return Suspects(rows[0].comparison, due, max(0.0, rows[0].wait_seconds))


async def look_again(
    connection: AsyncConnection,
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
            "keys": list(found),
            "fingerprints": [",".join(fingerprints) for fingerprints in found.values()],
            "pause": timedelta(seconds=seconds),
        },
    )


async def remove(connection: AsyncConnection, comparison: str, keys: Sequence[str]) -> None:
    await connection.execute(_REMOVE, {"of_comparison": comparison, "keys": list(keys)})
