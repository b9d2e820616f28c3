"""Runs and how far their scans came. One run is under way at most, and one waits at most."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Literal
from uuid import UUID

import asyncpg
from sqlalchemy import (
    ColumnElement,
    Double,
    Interval,
    Text,
    and_,
    any_,
    bindparam,
    cast,
    delete,
    exists,
    func,
    literal_column,
    not_,
    or_,
    select,
    tuple_,
    update,
)
from sqlalchemy.dialects.postgresql import ARRAY, insert

from libs.contracts.exact_json import decode, encode
from libs.contracts.operating.pages import ListPage, Order, edge_of
from libs.persistence.async_engine import AsyncConnection
from libs.persistence.earlier_clock import EARLIER_NOW
from libs.persistence.keyset import beyond, in_order
from libs.persistence.tables import INSTANT, UUID_TYPE
from services.reconciliation.repository import differences, suspects
from services.reconciliation.tables import difference, scan
from services.reconciliation.tables import run as table

_NOW = func.clock_timestamp()
_COMPLETE = table.c.outcome == "complete"
# A run that ended in the future ended before PostgreSQL's clock was set back, by an unknown time: it is left out.
_HAS_ENDED = table.c.finished_at <= _NOW
_WAITS = table.c.started_at.is_(None)
_IS_UNDER_WAY = and_(table.c.started_at.is_not(None), table.c.finished_at.is_(None))
_ONLY_ONE_WAITS: list[ColumnElement[bool]] = [literal_column("(true)")]
"""The target of the unique index `run_waiting`."""

_LIST = select(
    table.c.run_id,
    table.c.cause,
    table.c.requested_at,
    table.c.started_at,
    table.c.finished_at,
    table.c.outcome,
    table.c.looked_at,
    table.c.suspected,
    table.c.in_flight,
    table.c.differing,
)
_FIND = _LIST.where(table.c.run_id == bindparam("id"))
_UNDER_WAY = _LIST.where(_IS_UNDER_WAY)
_KEY = tuple_(table.c.requested_at, table.c.run_id)
_EDGE = tuple_(bindparam("edge_at", type_=INSTANT), bindparam("edge_id", type_=UUID_TYPE))
_PAGES = {
    order: _LIST.where(beyond(_KEY, _EDGE, order)).order_by(
        *in_order(order, table.c.requested_at, table.c.run_id)
    )
    for order in Order
}
# Assigning the cause to itself makes RETURNING give the run that waits already.
_REQUEST = (
    insert(table)
    .values(cause=bindparam("cause"))
    .on_conflict_do_update(
        index_elements=_ONLY_ONE_WAITS, index_where=_WAITS, set_={"cause": table.c.cause}
    )
    .returning(table.c.run_id)
)
_REQUEST_DUE = (
    insert(table)
    .from_select(
        ["cause"],
        select(bindparam("cause", type_=Text)).where(
            not_(
                exists().where(
                    _COMPLETE,
                    table.c.finished_at.between(_NOW - bindparam("pause", type_=Interval), _NOW),
                )
            ),
            not_(exists().where(table.c.finished_at.is_(None))),
        ),
    )
    .on_conflict_do_nothing(index_elements=_ONLY_ONE_WAITS, index_where=_WAITS)
)
_NOTHING_TO_DO = """
    SELECT NOT EXISTS (SELECT 1 FROM run WHERE started_at IS NULL)
        AND NOT EXISTS (SELECT 1 FROM run WHERE started_at IS NOT NULL AND finished_at IS NULL)
        AND EXISTS (SELECT 1 FROM run WHERE outcome = 'complete'
            AND finished_at BETWEEN clock_timestamp() - make_interval(secs => $1) AND clock_timestamp())
    """
_running = table.alias("running")
_BEGIN = (
    update(table)
    .where(
        _WAITS,
        not_(exists().where(_running.c.started_at.is_not(None), _running.c.finished_at.is_(None))),
    )
    .values(started_at=_NOW)
    .returning(table.c.run_id, table.c.cause)
)
_FINISH = (
    update(table)
    .where(table.c.run_id == bindparam("id"), table.c.finished_at.is_(None))
    .values(
        finished_at=_NOW,
        outcome=bindparam("ended_as"),
        differing=select(func.count())
        .select_from(difference)
        .where(difference.c.closed_at.is_(None))
        .scalar_subquery(),
    )
)
_COUNT = (
    update(table)
    .where(table.c.run_id == bindparam("id"))
    .values(
        looked_at=table.c.looked_at + bindparam("more_looked_at"),
        suspected=table.c.suspected + bindparam("more_suspected"),
        in_flight=table.c.in_flight + bindparam("more_in_flight"),
    )
)
_PURGE = delete(table).where(table.c.finished_at < EARLIER_NOW - bindparam("age", type_=Interval))
_AGE = select(cast(func.extract("epoch", _NOW - table.c.started_at), Double)).where(
    table.c.run_id == bindparam("id")
)
_LAST_COMPLETE = (
    select(cast(func.extract("epoch", _NOW - table.c.finished_at), Double), table.c.in_flight)
    .where(_COMPLETE, _HAS_ENDED)
    .order_by(table.c.finished_at.desc())
    .limit(1)
)
_ALL_COMPARED = (
    select(func.max(table.c.finished_at))
    .where(_COMPLETE, _HAS_ENDED, table.c.in_flight == 0)
    .correlate(None)
    .scalar_subquery()
)
_IN_FLIGHT_SECONDS = select(
    cast(func.extract("epoch", _NOW - func.min(table.c.finished_at)), Double)
).where(_COMPLETE, _HAS_ENDED, or_(_ALL_COMPARED.is_(None), table.c.finished_at > _ALL_COMPARED))
_FIRST_REQUEST = select(cast(func.extract("epoch", _NOW - func.min(table.c.requested_at)), Double))
_SCANS = select(scan.c.name, scan.c.next_after, scan.c.is_done)
_INSERT_SCAN = insert(scan).values(
    name=bindparam("name"),
    run_id=bindparam("run_id"),
    next_after=bindparam("next_after"),
    is_done=bindparam("is_done"),
    advanced_at=_NOW,
)
_ADVANCE_SCAN = _INSERT_SCAN.on_conflict_do_update(
    index_elements=[scan.c.name],
    set_={name: _INSERT_SCAN.excluded[name] for name in ("run_id", "next_after", "is_done")}
    | {"advanced_at": _NOW},
)
_FORGET_SCANS = delete(scan)
_FORGET_NAMED_SCANS = _FORGET_SCANS.where(
    scan.c.name == any_(bindparam("names", type_=ARRAY(Text)))
)
_last_ended = (
    select(table.c.run_id, table.c.outcome, table.c.finished_at)
    .where(_HAS_ENDED)
    .order_by(table.c.finished_at.desc())
    .limit(1)
    .subquery()
)
_WAS_SCANNING = select(
    exists().where(
        scan.c.run_id == _last_ended.c.run_id,
        _last_ended.c.outcome == "gave_up",
        scan.c.advanced_at.between(
            _last_ended.c.finished_at - bindparam("pause", type_=Interval),
            _last_ended.c.finished_at,
        ),
    )
)

Outcome = Literal["complete", "gave_up"]

SCHEDULE = "schedule"
"""The cause of runs that begin by themselves."""
SCANNING = timedelta(minutes=10)
"""A run that was given up within this time of its last page was scanning; after longer it was stuck."""
STANDING = "standing"
"""The scan of the differences that stand: they are looked at again in every run, also when its scans do not meet them.
It is there while some of them have not become suspects yet.
"""
STANDING_PAGE = 5_000


@dataclass(frozen=True, slots=True)
class Run:
    """One reconciliation run and its counts.

    Args:
        looked_at: records on either side.
        in_flight: records that could not be compared: a command or a posting was going to change them, or they
            changed between looks.
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


async def request_run(connection: AsyncConnection, cause: str) -> UUID:
    """Have everything compared once more, from fresh data: the run that waits to begin, made if there is none."""
    requested = await connection.execute(_REQUEST, {"cause": cause})
    run_id: UUID = requested.scalar_one()
    return run_id


async def request_when_due(connection: AsyncConnection, cause: str, seconds: float) -> bool:
    """Request a run when the last complete one ended at least `seconds` ago and none is under way; whether one was."""
    arguments = {"cause": cause, "pause": timedelta(seconds=seconds)}
    return (await connection.execute(_REQUEST_DUE, arguments)).rowcount > 0


async def is_nothing_to_do(connection: asyncpg.Connection, seconds: float) -> bool:
    """Whether no run is under way or waits, and none is due by `request_when_due`: the only statement, once or several
    times a second, between the runs.
    """
    found: bool = await connection.fetchval(_NOTHING_TO_DO, seconds)
    return found


async def under_way(connection: AsyncConnection) -> Run | None:
    row = (await connection.execute(_UNDER_WAY)).first()
    return None if row is None else Run(**row._mapping)


async def begin(connection: AsyncConnection, starting_anew: Sequence[str]) -> Run | None:
    """Begin the run that waits; None when none does, or one is under way.

    The suspects that the run before it has left unsettled are its own: no later scan reads their records again where
    bookmarks have moved past them. `add_standing` has to follow while the scan STANDING is not done.

    A scheduled run goes on with the scans of a run that was given up while it was scanning, so that several runs make
    scans for which one is too short. Otherwise all scans begin at the start: a requested run has to compare everything
    from fresh data, and where one comparison was stuck the others are made again.

    Args:
        starting_anew: names of the scans that begin at the start in any case.
    """
    begun = (await connection.execute(_BEGIN)).first()
    if begun is None:
        return None
    was_scanning = await connection.execute(_WAS_SCANNING, {"pause": SCANNING})
    if begun.cause != SCHEDULE or not was_scanning.scalar_one():
        await connection.execute(_FORGET_SCANS)
    else:
        await connection.execute(_FORGET_NAMED_SCANS, {"names": starting_anew})
    await add_standing(connection, begun.run_id, None)
    return await find(connection, begun.run_id)


async def add_standing(connection: AsyncConnection, run_id: UUID, after: str | None) -> None:
    """Make the next differences that stand suspects of the run, a page of them: there may be millions."""
    place = ("", "") if after is None else tuple(decode(after))
    keys = await differences.standing_keys(connection, place, STANDING_PAGE)
    await suspects.add_of_several(connection, keys)
    next_after = encode(keys[-1]).decode() if len(keys) == STANDING_PAGE else None
    if next_after is not None or after is not None:
        await advance_scan(connection, run_id, STANDING, next_after)


async def find(connection: AsyncConnection, run_id: UUID) -> Run | None:
    row = (await connection.execute(_FIND, {"id": run_id})).first()
    return None if row is None else Run(**row._mapping)


async def page(connection: AsyncConnection, query: ListPage) -> list[Run]:
    """By when they were requested; one more than the page has, where there is one."""
    edge_at, edge_id = edge_of(query.place, query.order)
    rows = await connection.execute(
        _PAGES[query.order].limit(query.limit + 1), {"edge_at": edge_at, "edge_id": edge_id}
    )
    return [Run(**row._mapping) for row in rows]


async def age_seconds(connection: AsyncConnection, run_id: UUID) -> float:
    """Since it began, by the database's clock; negative where that was set back meanwhile."""
    return float((await connection.execute(_AGE, {"id": run_id})).scalar_one())


async def last_complete(connection: AsyncConnection) -> LastRun:
    row = (await connection.execute(_LAST_COMPLETE)).first()
    if row is not None:
        return LastRun(*row)
    return LastRun(max(0.0, (await connection.execute(_FIRST_REQUEST)).scalar_one() or 0.0), 0)


async def in_flight_seconds(connection: AsyncConnection) -> float:
    """How long ago the first of those complete runs ended that have all, up to the last one, left records in flight; 0
    where the last one left none.
    """
    return (await connection.execute(_IN_FLIGHT_SECONDS)).scalar_one() or 0.0


async def finish(connection: AsyncConnection, run_id: UUID, outcome: Outcome) -> None:
    await connection.execute(_FINISH, {"id": run_id, "ended_as": outcome})


async def purge(connection: AsyncConnection, days: int) -> None:
    """Delete runs that ended more than `days` ago."""
    await connection.execute(_PURGE, {"age": timedelta(days=days)})


async def scans(connection: AsyncConnection) -> dict[str, ScanPosition]:
    """How far the scans of the run that is under way came, by name; those that have not begun are left out."""
    rows = await connection.execute(_SCANS)
    return {row.name: ScanPosition(row.next_after, row.is_done) for row in rows}


async def advance_scan(
    connection: AsyncConnection, run_id: UUID, name: str, next_after: str | None
) -> None:
    """Record how far a scan of the run came.

    Args:
        next_after: where the scan's next page begins; None: it has come to its end.
    """
    await connection.execute(
        _ADVANCE_SCAN,
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
            "id": run_id,
            "more_looked_at": looked_at,
            "more_suspected": suspected,
            "more_in_flight": in_flight,
        },
    )
