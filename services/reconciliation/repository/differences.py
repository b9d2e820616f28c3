"""Differences. A row is opened once for each kind and subject, and closed when it is no longer found or is explained.

One that an operator explained is not opened again while its fingerprint stays as it was explained.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import Row, text
from sqlalchemy.ext.asyncio import AsyncConnection

from libs.contracts.exact_json import decode, encode
from services.reconciliation.models import Difference, Side

PURGE_BATCH = 10_000
"""Of one run: few enough for one statement, and far more than runs close in an hour for long."""

_SELECT = (
    "SELECT difference_id, comparison, kind, subject, ids::text, ours::text, theirs::text, first_seen, last_seen,"
    " closed_at, closed_as, reason, closed_by FROM difference"
)
_STANDING = text(
    "SELECT difference_id, key, kind, subject, ours::text, theirs::text, fingerprint, closed_as FROM difference"
    " WHERE comparison = :comparison AND key = ANY(:keys)"
    " AND (closed_at IS NULL OR (closed_as = 'explained' AND gone_at IS NULL))"
    " ORDER BY difference_id FOR UPDATE"
)
# A subject may have moved from one key to another: then the row moves with it.
_OPEN = text(
    "INSERT INTO difference (comparison, key, kind, subject, ids, ours, theirs, fingerprint) VALUES (:comparison,"
    " :key, :kind, :subject, CAST(:ids AS jsonb), CAST(:ours AS jsonb), CAST(:theirs AS jsonb), :fingerprint)"
    " ON CONFLICT (kind, subject) WHERE closed_at IS NULL DO UPDATE SET comparison = excluded.comparison,"
    " key = excluded.key, ids = excluded.ids, ours = excluded.ours, theirs = excluded.theirs,"
    " fingerprint = excluded.fingerprint, last_seen = clock_timestamp()"
)
_SEEN = text(
    "UPDATE difference SET last_seen = clock_timestamp(), ids = CAST(:ids AS jsonb),"
    " ours = CAST(:ours AS jsonb), theirs = CAST(:theirs AS jsonb), fingerprint = :fingerprint"
    " WHERE difference_id = :id"
)
_DISAPPEARED = text(
    "UPDATE difference SET closed_at = clock_timestamp(), closed_as = 'disappeared'"
    " WHERE difference_id = ANY(:ids) AND closed_at IS NULL"
)
_GONE = text(
    "UPDATE difference SET gone_at = clock_timestamp() WHERE difference_id = ANY(:ids)"
    " AND closed_as = 'explained'"
)
# An earlier explanation of the same subject has come to its end: it was of something else.
_SUPERSEDE = text(
    "UPDATE difference earlier SET gone_at = clock_timestamp() FROM difference now"
    " WHERE now.difference_id = :id AND now.closed_at IS NULL"
    " AND (earlier.kind, earlier.subject) = (now.kind, now.subject)"
    " AND earlier.closed_as = 'explained' AND earlier.gone_at IS NULL"
)
_EXPLAIN = text(
    "UPDATE difference SET closed_at = clock_timestamp(), closed_as = 'explained', reason = :reason,"
    " closed_by = :by WHERE difference_id = :id AND closed_at IS NULL RETURNING difference_id"
)
_KNOWN = text(
    "SELECT subject FROM difference WHERE kind = ANY(:kinds) AND subject = ANY(:subjects)"
)
_PURGE = text(
    "DELETE FROM difference WHERE difference_id IN (SELECT difference_id FROM difference"
    " WHERE closed_at < clock_timestamp() - make_interval(days => :days)"
    " AND (closed_as = 'disappeared' OR gone_at < clock_timestamp() - make_interval(days => :days))"
    " ORDER BY closed_at LIMIT :limit)"
)
_FIND = text(_SELECT + " WHERE difference_id = :id")
_LIST = text(
    _SELECT + " WHERE (CAST(:kind AS text) IS NULL OR kind = :kind)"
    " AND (:closed OR closed_at IS NULL) ORDER BY first_seen, difference_id LIMIT :limit"
)
_OPEN_BY_KIND = text(
    "SELECT kind, count(*), extract(epoch FROM clock_timestamp() - min(first_seen))"
    " FROM difference WHERE closed_at IS NULL GROUP BY kind"
)


@dataclass(frozen=True, slots=True)
class RecordedDifference:
    """A row, as operators see it."""

    difference_id: UUID
    comparison: str
    kind: str
    subject: str
    ids: Mapping[str, str]
    ours: Side
    theirs: Side
    first_seen: datetime
    last_seen: datetime
    closed_at: datetime | None
    closed_as: str | None
    reason: str | None
    closed_by: str | None


async def settle(
    connection: AsyncConnection, comparison: str, found: Mapping[str, Sequence[Difference]]
) -> None:
    """Record what was found under each key: these differences and no others stand from now on."""
    rows = await connection.execute(_STANDING, {"comparison": comparison, "keys": list(found)})
    standing = rows.all()
    opened = {(row.kind, row.subject): row for row in standing if row.closed_as is None}
    explained = {(row.kind, row.subject): row for row in standing if row.closed_as is not None}
    stay: set[UUID] = set()
    for key, differences in found.items():
        for difference in differences:
            name = (difference.kind, difference.subject)
            values = _values(difference)
            known = opened.get(name)
            if known is not None:
                await connection.execute(_SEEN, {"id": known.difference_id, **values})
            elif _is_same(explained.get(name), difference):
                known = explained[name]
                await connection.execute(_SEEN, {"id": known.difference_id, **values})
            else:
                await connection.execute(
                    _OPEN,
                    {
                        "comparison": comparison,
                        "key": key,
                        "kind": difference.kind,
                        "subject": difference.subject,
                        **values,
                    },
                )
            if known is not None:
                stay.add(known.difference_id)
    left = [row.difference_id for row in standing if row.difference_id not in stay]
    if left:
        await connection.execute(_DISAPPEARED, {"ids": left})
        await connection.execute(_GONE, {"ids": left})


async def open_unless_known(
    connection: AsyncConnection, comparison: str, found: Mapping[str, Difference]
) -> None:
    """Open what has never been a difference before, by key."""
    rows = await connection.execute(
        _KNOWN,
        {
            "kinds": list({difference.kind for difference in found.values()}),
            "subjects": [difference.subject for difference in found.values()],
        },
    )
    known = set(rows.scalars())
    for key, difference in found.items():
        if difference.subject not in known:
            await connection.execute(
                _OPEN,
                {
                    "comparison": comparison,
                    "key": key,
                    "kind": difference.kind,
                    "subject": difference.subject,
                    **_values(difference),
                },
            )


async def explain(connection: AsyncConnection, difference_id: UUID, reason: str, by: str) -> bool:
    """Close an open one with an operator's reason; False when it is not open."""
    await connection.execute(_SUPERSEDE, {"id": difference_id})
    closed = await connection.execute(_EXPLAIN, {"id": difference_id, "reason": reason, "by": by})
    return closed.first() is not None


async def purge(connection: AsyncConnection, days: int) -> None:
    """Delete those that have been closed for so long, and explanations that came to their end so long ago; at most
    PURGE_BATCH at a time. An explanation that stands is kept.
    """
    await connection.execute(_PURGE, {"days": days, "limit": PURGE_BATCH})


async def find(connection: AsyncConnection, difference_id: UUID) -> RecordedDifference | None:
    row = (await connection.execute(_FIND, {"id": difference_id})).first()
    return None if row is None else _recorded(row)


async def oldest(
    connection: AsyncConnection, kind: str | None = None, *, closed: bool = False, limit: int = 100
) -> list[RecordedDifference]:
    """Open ones, the oldest first; with `closed`, those that are closed too."""
    rows = await connection.execute(_LIST, {"kind": kind, "closed": closed, "limit": limit})
    return [_recorded(row) for row in rows]


async def open_by_kind(connection: AsyncConnection) -> dict[str, tuple[int, float]]:
    """How many are open, and the age of the oldest in seconds."""
    rows = await connection.execute(_OPEN_BY_KIND)
    return {kind: (int(count), float(seconds)) for kind, count, seconds in rows}


def _values(difference: Difference) -> dict[str, str | None]:
    return {
        "ids": encode(dict(difference.ids)).decode(),
        "ours": _column(difference.ours),
        "theirs": _column(difference.theirs),
        "fingerprint": difference.fingerprint,
    }


def _column(side: Side) -> str | None:
    return None if side is None else encode(dict(side)).decode()


def _read(column: str | None) -> Any:
    return None if column is None else decode(column)


def _is_same(row: Row[Any] | None, difference: Difference) -> bool:
    """Whether it is as it was explained. A row of an earlier release has no fingerprint: its sides are compared, as
    JSON values, since the database keeps no other form.
    """
    if row is None:
        return False
    if row.fingerprint is not None:
        return bool(row.fingerprint == difference.fingerprint)
    return (_read(row.ours), _read(row.theirs)) == (
        _read(_column(difference.ours)),
        _read(_column(difference.theirs)),
    )


def _recorded(row: Row[Any]) -> RecordedDifference:
    return RecordedDifference(
        difference_id=row.difference_id,
        comparison=row.comparison,
        kind=row.kind,
        subject=row.subject,
        ids=decode(row.ids),
        ours=_read(row.ours),
        theirs=_read(row.theirs),
        first_seen=row.first_seen,
        last_seen=row.last_seen,
        closed_at=row.closed_at,
        closed_as=row.closed_as,
        reason=row.reason,
        closed_by=row.closed_by,
    )
