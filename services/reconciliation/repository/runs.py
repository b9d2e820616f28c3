"""Runs, how far their scans came, and what they suspect. One run is under way at most, and one waits at most."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal
from uuid import UUID

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

_SELECT = (
    "SELECT run_id, cause, requested_at, started_at, finished_at, outcome, looked_at, suspected, in_flight,"
    " differing FROM run"
)
_REQUEST = text(
    "INSERT INTO run (cause) VALUES (:cause)"
    " ON CONFLICT ((true)) WHERE started_at IS NULL DO UPDATE SET cause = run.cause RETURNING run_id"
)
_REQUEST_DUE = text(
    "INSERT INTO run (cause) SELECT :cause WHERE NOT EXISTS (SELECT FROM run WHERE outcome = 'complete'"
    " AND finished_at > clock_timestamp() - make_interval(secs => :seconds))"
    " AND NOT EXISTS (SELECT FROM run WHERE finished_at IS NULL)"
    " ON CONFLICT ((true)) WHERE started_at IS NULL DO NOTHING"
)
_UNDER_WAY = text(_SELECT + " WHERE started_at IS NOT NULL AND finished_at IS NULL")
_BEGIN = text(
    "UPDATE run SET started_at = clock_timestamp() WHERE started_at IS NULL"
    " AND NOT EXISTS (SELECT FROM run WHERE started_at IS NOT NULL AND finished_at IS NULL)"
    " RETURNING run_id"
)
_FIND = text(_SELECT + " WHERE run_id = :run_id")
_FINISH = text(
    "UPDATE run SET finished_at = clock_timestamp(), outcome = :outcome,"
    " differing = (SELECT count(*) FROM difference WHERE closed_at IS NULL)"
    " WHERE run_id = :run_id AND finished_at IS NULL"
)
_PURGE = text(
    "DELETE FROM run WHERE finished_at < clock_timestamp() - make_interval(days => :days)"
)
_AGE = text(
    "SELECT extract(epoch FROM clock_timestamp() - started_at) FROM run WHERE run_id = :run_id"
)
_LAST_COMPLETE = text(
    "SELECT CAST(extract(epoch FROM clock_timestamp() - finished_at) AS double precision), in_flight"
    " FROM run WHERE outcome = 'complete' ORDER BY finished_at DESC LIMIT 1"
)
_FIRST = text(
    "SELECT CAST(extract(epoch FROM clock_timestamp() - min(requested_at)) AS double precision) FROM run"
)
_COUNT = text(
    "UPDATE run SET looked_at = looked_at + :looked_at, suspected = suspected + :suspected,"
    " in_flight = in_flight + :in_flight WHERE run_id = :run_id"
)

# The differences that stand are looked at again in every run, also when its scans do not meet them.
_SUSPECT_STANDING = text(
    "INSERT INTO suspect (comparison, key) SELECT DISTINCT comparison, key FROM difference"
    " WHERE closed_at IS NULL OR (closed_as = 'explained' AND gone_at IS NULL) ON CONFLICT DO NOTHING"
)
# A run that was given up leaves suspects whose records no later scan reads again: bookmarks have moved past them.
_SUSPECT_UNSETTLED = text("UPDATE suspect SET due_at = clock_timestamp(), looks = 0, found = '{}'")
_SCANS = text("SELECT name, next_after, is_done FROM scan WHERE run_id = :run_id")
_ADVANCE = text(
    "INSERT INTO scan (name, run_id, next_after, is_done) VALUES (:name, :run_id, :next_after, :is_done)"
    " ON CONFLICT (name) DO UPDATE SET run_id = excluded.run_id, next_after = excluded.next_after,"
    " is_done = excluded.is_done"
)
_SUSPECT = text(
    "INSERT INTO suspect (comparison, key)"
    " SELECT :comparison, key FROM unnest(CAST(:keys AS text[])) AS key ON CONFLICT DO NOTHING"
)
_DUE = text(
    """
    WITH oldest AS (
        SELECT comparison FROM suspect WHERE comparison = ANY (CAST(:comparisons AS text[])) ORDER BY due_at LIMIT 1
    )
    SELECT comparison, key, looks, found,
        CAST(extract(epoch FROM due_at - clock_timestamp()) AS double precision) AS wait_seconds
    FROM suspect WHERE comparison = (SELECT comparison FROM oldest) ORDER BY due_at LIMIT :limit
    """
)
_LOOK_AGAIN = text(
    "UPDATE suspect SET due_at = clock_timestamp() + make_interval(secs => :seconds), looks = looks + 1,"
    " found = :found WHERE comparison = :comparison AND key = :key"
)
_CLEAR = text("DELETE FROM suspect WHERE comparison = :comparison AND key = ANY(:keys)")

Outcome = Literal["complete", "gave_up"]


@dataclass(frozen=True, slots=True)
class Run:
    """Args:
    looked_at: records on either side.
    in_flight: records of which nothing could be said.
    differing: differences that were open when it ended.
    """

    run_id: UUID
    cause: str
    requested_at: datetime
    started_at: datetime | None
    finished_at: datetime | None
    outcome: Outcome | None
    looked_at: int
    suspected: int
    in_flight: int
    differing: int


@dataclass(frozen=True, slots=True)
class ScanPosition:
    """Where the next page begins; None: at the start."""

    next_after: str | None = None
    is_done: bool = False


@dataclass(frozen=True, slots=True)
class LastRun:
    """The last complete run; before there was one, since when runs have been requested."""

    seconds_ago: float
    in_flight: int


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


async def request_run(connection: AsyncConnection, cause: str) -> UUID:
    """Have everything compared once more, from fresh data: the run that waits to begin, made if there is none."""
    return UUID(str((await connection.execute(_REQUEST, {"cause": cause})).scalar_one()))


async def request_when_due(connection: AsyncConnection, cause: str, seconds: float) -> None:
    """Request a run when the last complete one ended so long ago and none is under way."""
    await connection.execute(_REQUEST_DUE, {"cause": cause, "seconds": seconds})


async def under_way(connection: AsyncConnection) -> Run | None:
    row = (await connection.execute(_UNDER_WAY)).first()
    return None if row is None else Run(*row)


async def begin(connection: AsyncConnection) -> Run | None:
    """Begin the run that waits; None when none does, or one is under way.

    It looks at what the run before it has left unsettled, too.
    """
    begun = (await connection.execute(_BEGIN)).first()
    if begun is None:
        return None
    await connection.execute(text("DELETE FROM scan"))
    await connection.execute(_SUSPECT_UNSETTLED)
    await connection.execute(_SUSPECT_STANDING)
    return await find(connection, begun.run_id)


async def find(connection: AsyncConnection, run_id: UUID) -> Run | None:
    row = (await connection.execute(_FIND, {"run_id": run_id})).first()
    return None if row is None else Run(*row)


async def age_seconds(connection: AsyncConnection, run_id: UUID) -> float:
    """Since it began, by the database's clock."""
    return float((await connection.execute(_AGE, {"run_id": run_id})).scalar_one())


async def last_complete(connection: AsyncConnection) -> LastRun:
    row = (await connection.execute(_LAST_COMPLETE)).first()
    if row is not None:
        return LastRun(*row)
    return LastRun((await connection.execute(_FIRST)).scalar_one() or 0.0, 0)


async def finish(connection: AsyncConnection, run_id: UUID, outcome: Outcome) -> None:
    await connection.execute(_FINISH, {"run_id": run_id, "outcome": outcome})


async def purge(connection: AsyncConnection, days: int) -> None:
    """Forget runs that ended so long ago."""
    await connection.execute(_PURGE, {"days": days})


async def scans(connection: AsyncConnection, run_id: UUID) -> dict[str, ScanPosition]:
    """How far the run's scans came, by name; those that have not begun are left out."""
    rows = await connection.execute(_SCANS, {"run_id": run_id})
    return {row.name: ScanPosition(row.next_after, row.is_done) for row in rows}


async def advance_scan(
    connection: AsyncConnection, run_id: UUID, name: str, next_after: str | None
) -> None:
    """None: it has come to its end."""
    await connection.execute(
        _ADVANCE,
        {
            "name": name,
            "run_id": run_id,
            "next_after": next_after,
            "is_done": next_after is None,
        },
    )


async def count(
    connection: AsyncConnection,
    run_id: UUID,
    *,
    looked_at: int = 0,
    suspected: int = 0,
    in_flight: int = 0,
) -> None:
    await connection.execute(
        _COUNT,
        {
            "run_id": run_id,
            "looked_at": looked_at,
            "suspected": suspected,
            "in_flight": in_flight,
        },
    )


async def suspect(connection: AsyncConnection, comparison: str, keys: Sequence[str]) -> None:
    """Look at these, both sides read afresh."""
    await connection.execute(_SUSPECT, {"comparison": comparison, "keys": list(keys)})


async def next_suspects(
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
    connection: AsyncConnection, comparison: str, key: str, found: Iterable[str], seconds: float
) -> None:
    """Have the suspect looked at once more after `seconds`."""
    await connection.execute(
        _LOOK_AGAIN,
        {"comparison": comparison, "key": key, "found": list(found), "seconds": seconds},
    )


async def clear_suspects(connection: AsyncConnection, comparison: str, keys: Sequence[str]) -> None:
    await connection.execute(_CLEAR, {"comparison": comparison, "keys": list(keys)})
