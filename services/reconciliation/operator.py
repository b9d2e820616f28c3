"""`bankside reconcile` and `bankside differences …`: comparing now, and what differs."""

from __future__ import annotations

import asyncio
import time
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from cyclopts import App
from rich.markup import escape

from libs.cli.audit import record
from libs.cli.database import with_database
from libs.cli.decisions import Flag, operator_of, reason_of
from libs.cli.output import age, console, print_json
from libs.client.errors import OperatorError
from libs.contracts.exact_json import encode
from libs.persistence import cursor
from libs.persistence.engine import Database
from services.reconciliation.handlers import deposit_locations
from services.reconciliation.models import Side
from services.reconciliation.repository import differences, postings, runs
from services.reconciliation.repository.differences import RecordedDifference
from services.reconciliation.repository.runs import Run

SERVICE = "reconciliation"
MAX_SHOWN = 1000
POLL_SECONDS = 0.25


reconcile = App(name="reconcile", help="Compare all books with the providers' now.")
app = App(name="differences", help="What differs from the providers: list, show, explain.")


@reconcile.default
def start(
    *,
    wait: Flag = False,
    seconds: int = 3600,
    read_postings_again: Flag = False,
    json: Flag = False,
) -> int:
    """Request a run from fresh data; it changes nothing but the list of differences.

    Args:
        read_postings_again: Read postings and deposit loads from the first one on, after the provider was restored.
        wait: Until the run has ended; then 1 is returned when anything differs or is in flight.
        seconds: Wait at most so long.
        json: Print one JSON document.
    """

    async def work(database: Database) -> tuple[Run, list[RecordedDifference]]:
        async with database.transaction() as connection:
            if read_postings_again:
                await postings.forget(connection)
                await cursor.forget(connection, deposit_locations.STREAM)
            run_id = await runs.request_run(connection, "operator")
            await record(
                connection,
                "reconcile",
                run_id=str(run_id),
                read_postings_again=str(read_postings_again).lower(),
            )
        run = await _ended(database, run_id, seconds) if wait else await _found(database, run_id)
        async with database.transaction() as connection:
            return run, await differences.oldest(connection, limit=MAX_SHOWN) if wait else []

    run, found = with_database(SERVICE, work)
    if json:
        print_json({"run": asdict(run), "differences": [asdict(one) for one in found]})
    else:
        _show_run(run)
        for one in found:
            _show_line(one)
        if wait and run.in_flight:
            console().print(
                f"{run.in_flight} in flight: of these records the run could not say whether they differ."
            )
    return 1 if wait and (found or run.in_flight or run.outcome != "complete") else 0


@app.command(name="list")
def list_differences(
    *, kind: str | None = None, closed: Flag = False, limit: int = 100, json: Flag = False
) -> int:
    """List differences that are open, the oldest first.

    Args:
        kind: Only those of this kind.
        closed: Those that disappeared or were explained as well.
        limit: Show at most so many.
        json: Print one JSON document.
    """
    if not 1 <= limit <= MAX_SHOWN:
        raise OperatorError(f"--limit is 1 to {MAX_SHOWN}.")

    async def work(database: Database) -> list[RecordedDifference]:
        async with database.transaction() as connection:
            return await differences.oldest(connection, kind, closed=closed, limit=limit)

    found = with_database(SERVICE, work)
    if json:
        print_json({"differences": [asdict(one) for one in found]})
        return 0
    for one in found:
        _show_line(one)
    if not found:
        console().print("There is none.")
    return 0


@app.command
def show(difference_id: UUID, /, *, json: Flag = False) -> int:
    """Show a difference with both sides.

    Args:
        difference_id: As listed.
        json: Print one JSON document.
    """
    one = _look_up(difference_id)
    if json:
        print_json(asdict(one))
        return 0
    _show_line(one)
    out = console()
    for name, value in one.ids.items():
        out.print(f"  {name}: {escape(value)}")
    out.print(f"  ours:   {escape(_side(one.ours))}")
    out.print(f"  theirs: {escape(_side(one.theirs))}")
    out.print(f"  seen {one.first_seen:%Y-%m-%d %H:%M:%S}Z to {one.last_seen:%Y-%m-%d %H:%M:%S}Z")
    if one.closed_at is not None:
        by_whom = f" by {one.closed_by}: {one.reason}" if one.reason else ""
        out.print(f"  {one.closed_as} {one.closed_at:%Y-%m-%d %H:%M:%S}Z{escape(by_whom)}")
    return 0


@app.command
def explain(
    difference_id: UUID, /, *, reason: str, by: str | None = None, json: Flag = False
) -> int:
    """Close a difference with a reason. While it stays exactly as it is, it is not opened again.

    Args:
        difference_id: As listed.
        reason: Why both sides may differ.
        by: Who says so; without, the name of the user of this terminal.
        json: Print one JSON document.
    """
    given, operator = reason_of(reason), operator_of(by)

    async def work(database: Database) -> bool:
        async with database.transaction() as connection:
            explained = await differences.explain(connection, difference_id, given, operator)
            if explained:
                await record(
                    connection,
                    "differences.explain",
                    by=operator,
                    difference_id=str(difference_id),
                    reason=given,
                )
            return explained

    if not with_database(SERVICE, work):
        raise OperatorError(f"There is no open difference {difference_id}.")
    if json:
        print_json(asdict(_look_up(difference_id)))
    else:
        console().print(f"Explained: {difference_id}")
    return 0


async def _ended(database: Database, run_id: UUID, seconds: int) -> Run:
    deadline = time.monotonic() + seconds
    while True:
        run = await _found(database, run_id)
        if run.finished_at is not None:
            return run
        if time.monotonic() > deadline:
            raise OperatorError(f"The run {run_id} has not ended within {seconds} s.")
        await asyncio.sleep(POLL_SECONDS)


async def _found(database: Database, run_id: UUID) -> Run:
    async with database.transaction() as connection:
        run = await runs.find(connection, run_id)
    if run is None:
        raise OperatorError(f"There is no run {run_id}.")
    return run


def _look_up(difference_id: UUID) -> RecordedDifference:
    async def work(database: Database) -> RecordedDifference | None:
        async with database.transaction() as connection:
            return await differences.find(connection, difference_id)

    found = with_database(SERVICE, work)
    if found is None:
        raise OperatorError(f"There is no difference {difference_id}.")
    return found


def _show_run(run: Run) -> None:
    state = run.outcome or ("under way" if run.started_at else "requested")
    console().print(
        f"{run.run_id}  [bold]{state}[/]  looked at {run.looked_at}, in flight {run.in_flight},"
        f" differing {run.differing}"
    )


def _show_line(one: RecordedDifference) -> None:
    note = f"  {one.closed_as}" if one.closed_as else ""
    console().print(
        f"{one.difference_id}  [bold]{one.kind}[/]  {escape(one.subject)}"
        f"  {age(one.first_seen, datetime.now(UTC))} old{note}"
    )


def _side(side: Side) -> Any:
    return "nothing" if side is None else encode(dict(side)).decode()
