"""Differences. A row is opened once for each kind and subject, and closed when it is no longer found or is explained.

A difference that an operator explained is not opened again while its fingerprint stays as it was explained.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import timedelta
from typing import Any
from uuid import UUID

from sqlalchemy import (
    BindParameter,
    ColumnElement,
    Double,
    Integer,
    Interval,
    Row,
    Text,
    and_,
    any_,
    bindparam,
    case,
    cast,
    delete,
    func,
    literal_column,
    or_,
    select,
    tuple_,
    update,
)
from sqlalchemy.dialects.postgresql import ARRAY, JSONB, insert

from libs.contracts.exact_json import decode, encode
from libs.persistence.async_engine import AsyncConnection
from libs.persistence.chosen_rows import is_chosen
from libs.persistence.earlier_clock import EARLIER_NOW
from libs.persistence.tables import UUID_TYPE
from services.reconciliation.models import Difference, Side
from services.reconciliation.tables import difference as table

PURGE_BATCH = 1_000
"""Rows that one statement deletes at most."""

# Written out, not as a parameter: only then does a plan use the partial indexes.
_EXPLAINED: ColumnElement[str] = literal_column("'explained'")
_NOW = func.clock_timestamp()
_IS_OPEN = table.c.closed_at.is_(None)
_IS_EXPLAINED = and_(table.c.closed_as == _EXPLAINED, table.c.gone_at.is_(None))
_STANDS = or_(_IS_OPEN, _IS_EXPLAINED)


def _texts(name: str) -> BindParameter[Sequence[str | None]]:
    return bindparam(name, type_=ARRAY(Text))


def _revision(fingerprint: ColumnElement[Any]) -> ColumnElement[int]:
    """The revision of an open row: one higher when its fingerprint has changed."""
    return case((table.c.fingerprint != fingerprint, table.c.revision + 1), else_=table.c.revision)


_PLACE = tuple_(table.c.comparison, table.c.key)
_STANDING_KEYS = (
    select(table.c.comparison, table.c.key)
    .where(
        _STANDS,
        tuple_(bindparam("comparison", type_=Text), bindparam("key", type_=Text)) < _PLACE,
    )
    .distinct()
    .order_by(table.c.comparison, table.c.key)
    .limit(bindparam("limit"))
)
_IDS = any_(bindparam("difference_ids", type_=ARRAY(UUID_TYPE)))
_STANDING = (
    select(
        table.c.difference_id,
        table.c.key,
        table.c.kind,
        table.c.subject,
        cast(table.c.ours, Text).label("ours"),
        cast(table.c.theirs, Text).label("theirs"),
        table.c.fingerprint,
        table.c.closed_as,
    )
    .where(
        table.c.comparison == bindparam("comparison"), table.c.key == any_(_texts("keys")), _STANDS
    )
    .order_by(table.c.difference_id)
    .with_for_update()
)
_found = (
    func.unnest(
        _texts("keys"),
        _texts("kinds"),
        _texts("subjects"),
        _texts("all_ids"),
        _texts("our_sides"),
        _texts("their_sides"),
        _texts("fingerprints"),
    )
    .table_valued("key", "kind", "subject", "ids", "ours", "theirs", "fingerprint")
    .render_derived(name="found")
)
_INSERT = insert(table).from_select(
    ["comparison", "key", "kind", "subject", "ids", "ours", "theirs", "fingerprint"],
    select(
        bindparam("comparison", type_=Text),
        _found.c.key,
        _found.c.kind,
        _found.c.subject,
        cast(_found.c.ids, JSONB),
        cast(_found.c.ours, JSONB),
        cast(_found.c.theirs, JSONB),
        _found.c.fingerprint,
    ),
)
# A subject may have moved from one key to another: then the row moves with it.
_OPEN = _INSERT.on_conflict_do_update(
    index_elements=[table.c.kind, table.c.subject],
    index_where=_IS_OPEN,
    set_={
        name: _INSERT.excluded[name]
        for name in ("comparison", "key", "ids", "ours", "theirs", "fingerprint")
    }
    | {"last_seen": _NOW, "revision": _revision(_INSERT.excluded.fingerprint)},
)
_seen = (
    func.unnest(
        bindparam("difference_ids", type_=ARRAY(UUID_TYPE)),
        _texts("all_ids"),
        _texts("our_sides"),
        _texts("their_sides"),
        _texts("fingerprints"),
    )
    .table_valued("difference_id", "ids", "ours", "theirs", "fingerprint")
    .render_derived(name="seen")
)
_SEEN = (
    update(table)
    .where(table.c.difference_id == _seen.c.difference_id)
    .values(
        last_seen=_NOW,
        ids=cast(_seen.c.ids, JSONB),
        ours=cast(_seen.c.ours, JSONB),
        theirs=cast(_seen.c.theirs, JSONB),
        fingerprint=_seen.c.fingerprint,
        revision=_revision(_seen.c.fingerprint),
    )
)
_DISAPPEARED = (
    update(table)
    .where(table.c.difference_id == _IDS, _IS_OPEN)
    .values(closed_at=_NOW, closed_as="disappeared")
)
_GONE = (
    update(table)
    .where(table.c.difference_id == _IDS, table.c.closed_as == _EXPLAINED)
    .values(gone_at=_NOW)
)
_READ = bindparam("read_revision", type_=Integer)
# An earlier explanation of the same subject ends: it was of another difference.
_open = table.alias("opened")
_SUPERSEDE = (
    update(table)
    .where(
        _open.c.difference_id == bindparam("id"),
        _open.c.closed_at.is_(None),
        or_(_READ.is_(None), _open.c.revision == _READ),
        table.c.kind == _open.c.kind,
        table.c.subject == _open.c.subject,
        _IS_EXPLAINED,
    )
    .values(gone_at=_NOW)
)
_EXPLAIN = (
    update(table)
    .where(
        table.c.difference_id == bindparam("id"),
        _IS_OPEN,
        or_(_READ.is_(None), table.c.revision == _READ),
    )
    .values(
        closed_at=_NOW,
        closed_as="explained",
        reason=bindparam("given_reason"),
        closed_by=bindparam("operator"),
    )
    .returning(table.c.difference_id)
)
_KNOWN = select(table.c.subject).where(
    table.c.kind == any_(_texts("kinds")), table.c.subject == any_(_texts("subjects"))
)
_LONG_AGO = EARLIER_NOW - bindparam("age", type_=Interval)
_PURGE = delete(table).where(
    is_chosen(
        table.c.difference_id,
        select(table.c.difference_id)
        .where(
            table.c.closed_at < _LONG_AGO,
            or_(table.c.closed_as == "disappeared", table.c.gone_at < _LONG_AGO),
        )
        .order_by(table.c.closed_at)
        .limit(bindparam("batch")),
    )
)
_OPEN_BY_KIND = (
    select(
        table.c.kind,
        func.count(),
        cast(func.extract("epoch", _NOW - func.min(table.c.first_seen)), Double),
    )
    .where(_IS_OPEN)
    .group_by(table.c.kind)
)


async def settle(
    connection: AsyncConnection, comparison: str, found: Mapping[str, Sequence[Difference]]
) -> None:
    """Record the differences that were found under each key. Rows of these keys that were not found are closed."""
    rows = await connection.execute(_STANDING, {"comparison": comparison, "keys": list(found)})
    standing = rows.all()
    opened = {(row.kind, row.subject): row for row in standing if row.closed_as is None}
    explained = {(row.kind, row.subject): row for row in standing if row.closed_as is not None}
    seen: dict[UUID, Difference] = {}
    new: dict[tuple[str, str], tuple[str, Difference]] = {}
    for key, differences in found.items():
        for difference in differences:
            name = (difference.kind, difference.subject)
            row = opened.get(name)
            if row is None and _is_same(explained.get(name), difference):
                row = explained[name]
            if row is None:
                new[name] = key, difference
            else:
                seen[row.difference_id] = difference
    if seen:
        await connection.execute(_SEEN, {"difference_ids": list(seen), **_columns(seen.values())})
    await _open_all(connection, comparison, list(new.values()))
    left = [row.difference_id for row in standing if row.difference_id not in seen]
    if left:
        await connection.execute(_DISAPPEARED, {"difference_ids": left})
        await connection.execute(_GONE, {"difference_ids": left})


async def open_unless_known(
    connection: AsyncConnection, comparison: str, found: Mapping[str, Difference]
) -> None:
    """Open the differences, by key, whose subjects have never been recorded."""
    rows = await connection.execute(
        _KNOWN,
        {
            "kinds": list({difference.kind for difference in found.values()}),
            "subjects": [difference.subject for difference in found.values()],
        },
    )
    known = set(rows.scalars())
    new = {
        (difference.kind, difference.subject): (key, difference)
        for key, difference in found.items()
        if difference.subject not in known
    }
    await _open_all(connection, comparison, list(new.values()))


async def _open_all(
    connection: AsyncConnection, comparison: str, found: Sequence[tuple[str, Difference]]
) -> None:
    """Open each difference under its key. No two have the same kind and subject."""
    if not found:
        return
    differences = [difference for _, difference in found]
    await connection.execute(
        _OPEN,
        {
            "comparison": comparison,
            "keys": [key for key, _ in found],
            "kinds": [difference.kind for difference in differences],
            "subjects": [difference.subject for difference in differences],
            **_columns(differences),
        },
    )


async def explain(
    connection: AsyncConnection,
    difference_id: UUID,
    reason: str,
    by: str,
    revision: int | None = None,
) -> bool:
    """Close an open one with an operator's reason.

    Args:
        revision: which the operator has read; None: any.

    Returns:
        False when it is not open, or has another revision.
    """
    await connection.execute(_SUPERSEDE, {"id": difference_id, "read_revision": revision})
    closed = await connection.execute(
        _EXPLAIN,
        {
            "id": difference_id,
            "read_revision": revision,
            "given_reason": reason,
            "operator": by,
        },
    )
    return closed.first() is not None


async def standing_keys(
    connection: AsyncConnection, after: tuple[str, str], limit: int
) -> list[tuple[str, str]]:
    """The comparisons and keys of differences that are open, or explained and still found, in their order."""
    comparison, key = after
    rows = await connection.execute(
        _STANDING_KEYS, {"comparison": comparison, "key": key, "limit": limit}
    )
    return [(row.comparison, row.key) for row in rows]


async def purge(connection: AsyncConnection, days: int) -> bool:
    """Delete rows that disappeared more than `days` ago, and explained ones that were not found any more since then;
    at most PURGE_BATCH of them. An explanation that still stands is kept.

    Returns:
        Whether there may be more.
    """
    deleted = await connection.execute(_PURGE, {"age": timedelta(days=days), "batch": PURGE_BATCH})
    return deleted.rowcount >= PURGE_BATCH


async def open_by_kind(connection: AsyncConnection) -> dict[str, tuple[int, float]]:
    """How many are open, and the age of the oldest in seconds."""
    rows = await connection.execute(_OPEN_BY_KIND)
    return {kind: (count, seconds) for kind, count, seconds in rows}


def _columns(differences: Iterable[Difference]) -> dict[str, list[str | None]]:
    found = list(differences)
    return {
        "all_ids": [encode(dict(difference.ids)).decode() for difference in found],
        "our_sides": [_column(difference.ours) for difference in found],
        "their_sides": [_column(difference.theirs) for difference in found],
        "fingerprints": [difference.fingerprint for difference in found],
    }


def _column(side: Side) -> str | None:
    return None if side is None else encode(dict(side)).decode()


def read_side(column: str | None) -> Any:
    """As it was recorded; None where the side holds nothing."""
    return None if column is None else decode(column)


def _is_same(row: Row[Any] | None, difference: Difference) -> bool:
    """Whether it is as it was explained. A row of an earlier release has no fingerprint: its sides are compared, as
    JSON values, since the database keeps no other form.
    """
    if row is None:
        return False
    if row.fingerprint is not None:
        return bool(row.fingerprint == difference.fingerprint)
    return (read_side(row.ours), read_side(row.theirs)) == (
        read_side(_column(difference.ours)),
        read_side(_column(difference.theirs)),
    )
