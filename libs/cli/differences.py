"""`bankside reconcile` and `bankside differences …`: comparing now, and what differs."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from cyclopts import App

from libs.cli.decisions import Flag, reason_of
from libs.cli.output import age, console, escape, print_json
from libs.cli.pages import MAX_SHOWN, list_of
from libs.client.errors import OperatorError
from libs.client.operator_client import ask
from libs.contracts.errors import InvalidState, NotFound
from libs.contracts.exact_json import encode
from libs.contracts.operating import differences as contract
from libs.contracts.operating.differences import (
    DifferenceKind,
    DifferenceState,
    ListOperatorDifferences,
    OperatorDifference,
    ReconciliationRun,
)
from libs.contracts.operating.pages import Order

POLL_SECONDS = 0.5
BY_HAND = "bankside reconcile"
"""The reason of a run that was requested without one."""


reconcile = App(name="reconcile", help="Compare all books with the providers' now.")
app = App(name="differences", help="What differs from the providers: list, show, explain.")


@reconcile.default
def start(
    *,
    wait: Flag = False,
    seconds: int = 3600,
    read_postings_again: Flag = False,
    reason: str = BY_HAND,
    json: Flag = False,
) -> int:
    """Request a run from fresh data; it changes nothing but the list of differences.

    Such as `bankside reconcile --wait`.

    Args:
        read_postings_again: Read postings and deposit loads from the first one on, after the provider was restored.
        wait: Until the run has ended; then 1 is returned when anything differs or is in flight.
        seconds: How long to wait at most.
        reason: Why, for the audit.
        json: Print one JSON document.
    """
    command = contract.StartReconciliation(
        read_postings_again=read_postings_again, reason=reason_of(reason)
    )
    run = ask(contract.START_RECONCILIATION, command)
    found: list[OperatorDifference] = []
    if wait:
        run = _ended(run.run_id, seconds)
        found = _oldest(MAX_SHOWN, state=DifferenceState.OPEN)
    if json:
        print_json({"run": _run(run), "differences": [one.model_dump() for one in found]})
    else:
        _show_run(run)
        for one in found:
            _show_line(one)
        if wait and run.in_flight:
            console().print(
                f"{run.in_flight} in flight: of these records the run could not say whether they differ."
            )
    return 1 if wait and (found or run.in_flight or run.state != "complete") else 0


@app.command(name="list")
def list_differences(
    *,
    kind: DifferenceKind | None = None,
    closed: Flag = False,
    limit: int = 100,
    json: Flag = False,
) -> int:
    """List differences that are open, the oldest first.

    Such as `bankside differences list --kind wire_state`.

    Args:
        kind: Only those of this kind.
        closed: Those that disappeared or were explained as well.
        limit: How many to show at most.
        json: Print one JSON document.
    """
    found = _oldest(limit, kind=kind, state=None if closed else DifferenceState.OPEN)
    if json:
        print_json({"differences": [one.model_dump() for one in found]})
        return 0
    for one in found:
        _show_line(one)
    if not found:
        console().print("There is none.")
    return 0


@app.command
def show(difference_id: UUID, /, *, json: Flag = False) -> int:
    """Show a difference with both sides.

    Such as `bankside differences show DIFFERENCE_ID`.

    Args:
        difference_id: As listed.
        json: Print one JSON document.
    """
    try:
        one = ask(
            contract.GET_DIFFERENCE,
            contract.GetOperatorDifference(difference_id=str(difference_id)),
        )
    except NotFound:
        raise OperatorError(f"There is no difference {difference_id}.") from None
    if json:
        print_json(one.model_dump())
        return 0
    _show_line(one)
    out = console()
    for name, value in one.ids.items():
        out.print(f"  {name}: {escape(value)}")
    out.print(f"  ours:   {escape(_side(one.ours))}")
    out.print(f"  theirs: {escape(_side(one.theirs))}")
    out.print(f"  revision: {one.revision}")
    out.print(f"  seen {one.first_seen:%Y-%m-%d %H:%M:%S}Z to {one.last_seen:%Y-%m-%d %H:%M:%S}Z")
    if one.closed_at is not None:
        by_whom = f" by {one.closed_by}: {one.reason}" if one.reason else ""
        out.print(f"  {one.closed_as} {one.closed_at:%Y-%m-%d %H:%M:%S}Z{escape(by_whom)}")
    return 0


@app.command
def explain(
    difference_id: UUID, /, *, reason: str, revision: int | None = None, json: Flag = False
) -> int:
    """Close a difference with a reason. It is opened again when a run finds it otherwise: of a balance, off by another
    amount.

    Such as `bankside differences explain DIFFERENCE_ID --revision 1 --reason "booked by hand at the bank"`.

    Args:
        difference_id: As listed.
        reason: Why both sides may differ. Your operator's name stands beside it.
        revision: As shown: a difference that a run has found otherwise since then stays open.
        json: Print one JSON document.
    """
    command = contract.ExplainDifference(
        difference_id=str(difference_id), revision=revision, reason=reason_of(reason)
    )
    try:
        one = ask(contract.EXPLAIN_DIFFERENCE, command)
    except NotFound:
        raise OperatorError(f"There is no difference {difference_id}.") from None
    except InvalidState as refusal:
        raise OperatorError(refusal.detail) from None
    if json:
        print_json(one.model_dump())
    else:
        console().print(f"Explained: {difference_id}")
    return 0


def _ended(run_id: str, seconds: int) -> ReconciliationRun:
    deadline = time.monotonic() + seconds
    while True:
        run = ask(contract.GET_RUN, contract.GetReconciliationRun(run_id=run_id))
        if run.finished_at is not None:
            return run
        if time.monotonic() > deadline:
            raise OperatorError(f"The run {run_id} has not ended within {seconds} s.")
        time.sleep(POLL_SECONDS)


def _oldest(
    limit: int, *, kind: str | None = None, state: DifferenceState | None
) -> list[OperatorDifference]:
    """As many as `limit`, the oldest first."""
    query = ListOperatorDifferences(kind=kind, state=state, order=Order.OLDEST)
    return list_of(contract.LIST_DIFFERENCES, query, limit)


def _run(run: ReconciliationRun) -> dict[str, Any]:
    """As JSON; `outcome` is null until the run has ended."""
    return run.model_dump() | {"outcome": run.state if run.finished_at else None}


def _show_run(run: ReconciliationRun) -> None:
    console().print(
        f"{run.run_id}  [bold]{run.state.replace('_', ' ')}[/]  looked at {run.looked_at}, in flight {run.in_flight},"
        f" differing {run.differing}"
    )


def _show_line(one: OperatorDifference) -> None:
    note = f"  {one.closed_as}" if one.closed_as else ""
    console().print(
        f"{one.difference_id}  [bold]{one.kind}[/]  {escape(one.subject)}"
        f"  {age(one.first_seen, datetime.now(UTC))} old{note}"
    )


def _side(side: dict[str, Any] | None) -> Any:
    return "nothing" if side is None else encode(side).decode()
