"""`bankside feeds …`: where each provider feed stands, and entries that it cannot get past."""

from __future__ import annotations

from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any

import msgspec
from cyclopts import App
from rich.markup import escape

from libs.cli.audit import record
from libs.cli.database import with_database
from libs.cli.decisions import (
    Flag,
    agrees,
    operator_of,
    reason_of,
    refuse_to_ask_in_json,
    require_terminal,
)
from libs.cli.output import age, console, print_json
from libs.client.errors import OperatorError
from libs.persistence import feed_stops
from libs.persistence.engine import Database
from libs.persistence.feed_events import KEPT
from libs.persistence.feed_stops import FeedState, Skip

SERVICES = ("ledger_read", "onboarding", "payments")
"""Those that follow feeds. A feed is named after its service too: `onboarding/identity`."""
SKIPS_SHOWN = 20


app = App(name="feeds", help="Provider feeds: where they stand, entries that stop them.")


@app.command(name="list")
def list_feeds(*, stopped: Flag = False, json: Flag = False) -> int:
    """List the feeds of all services with the position up to which each was applied.

    Args:
        stopped: Only those that stand still.
        json: Print one JSON document.
    """
    found = [
        (service, state)
        for service in SERVICES
        for state in with_database(service, _feed_states)
        if state.stop is not None or not stopped
    ]
    if json:
        print_json({"feeds": [_document(service, state) for service, state in found]})
        return 0
    for service, state in found:
        _show_line(service, state)
    if not found:
        console().print("There is none.")
    return 0


@app.command
def show(feed: str, /, *, json: Flag = False) -> int:
    """Show where a feed stands, the entry that stops it, and which entries were skipped.

    Of an entry there are its position, its type and the names and types of its fields; its values are the provider's
    to show.

    Args:
        feed: As listed, such as `payments/core`.
        json: Print one JSON document.
    """
    service, name = _parsed(feed)

    async def look(database: Database) -> tuple[list[FeedState], list[Skip]]:
        async with database.transaction() as connection:
            return (
                await feed_stops.feed_states(connection),
                await feed_stops.skips(connection, name, most=SKIPS_SHOWN),
            )

    feed_states, skips = with_database(service, look)
    state = next((one for one in feed_states if one.feed == name), None)
    if state is None:
        raise OperatorError(f"There is no feed {feed!r}; see `bankside feeds list`.")
    if json:
        print_json(_document(service, state) | {"skips": [asdict(skip) for skip in skips]})
        return 0
    _show_line(service, state)
    out, now = console(), datetime.now(UTC)
    if state.stop is not None:
        tried = f"tried {state.tries} times, last {age(state.tried_at, now)} ago"
        out.print(f"  {escape(state.stop.error)}")
        out.print(f"  {tried}; fields: {escape(state.stop.outline or 'not known')}")
    for skip in skips:
        done = f"skipped {age(skip.skipped_at, now)} ago" if skip.skipped_at else "to be skipped"
        out.print(f"  {skip.position} {done}, asked by {escape(skip.asked_by)}")
        out.print(f"    {escape(skip.reason)}")
    return 0


@app.command
def skip(
    feed: str,
    /,
    *,
    position: int,
    reason: str,
    by: str | None = None,
    yes: Flag = False,
    json: Flag = False,
) -> int:
    """Have the entry skipped at which a feed stands still. What it reports is then never applied.

    The feed moves past the entry at its next try, within 30 s. Who asked for it, and why, is recorded.

    Args:
        feed: As listed, such as `payments/core`.
        position: Of the entry, as shown.
        reason: Why it may be skipped, and what was done about what it reports.
        by: Who decides; without, the name of the user of this terminal.
        yes: Do not ask.
        json: Print one JSON document; needs --yes.
    """
    service, name = _parsed(feed)
    reason, asked_by = reason_of(reason), operator_of(by)
    refuse_to_ask_in_json(yes=yes, json=json)
    if not yes and not _agreed_to(f"Skip the entry at {position} of {escape(feed)}, for good?"):
        console().print("Nothing was done.")
        return 1

    async def work(database: Database) -> bool:
        async with database.transaction() as connection:
            requested = await feed_stops.request_skip(
                connection, name, position, reason=reason, asked_by=asked_by
            )
            if requested:
                await record(
                    connection,
                    "feeds.skip",
                    by=asked_by,
                    feed=name,
                    position=position,
                    reason=reason,
                )
            return requested

    if not with_database(service, work):
        raise OperatorError(
            f"{feed} does not stand still at an entry at {position}, or it is to be skipped already;"
            f" see `bankside feeds show {feed}`."
        )
    if json:
        print_json({"feed": feed, "position": position, "reason": reason, "asked_by": asked_by})
    else:
        console().print(
            f"{escape(feed)} skips {position} at its next try; see `bankside feeds show`."
        )
    return 0


@app.command
def restart(
    feed: str,
    /,
    *,
    reason: str,
    apply_again: Flag = False,
    by: str | None = None,
    yes: Flag = False,
    json: Flag = False,
) -> int:
    """Have a feed read again from its provider's first entry, when the provider no longer knows where it goes on.

    For a feed that stands still without an entry that stops it, of a provider whose entries have ids. The last 10,000
    entries are passed by. A feed that had more is restarted with --apply-again only, since its older entries are
    applied a second time: subscribers get events of ledger_read again, under new ids, and payments keeps its
    contradictions again. Onboarding compares them with what it knows.

    Args:
        feed: As listed, such as `payments/core`.
        reason: Why, and what the provider said.
        apply_again: Also when older entries are applied a second time.
        by: Who decides; without, the name of the user of this terminal.
        yes: Do not ask.
        json: Print one JSON document; needs --yes.
    """
    service, name = _parsed(feed)
    reason, asked_by = reason_of(reason), operator_of(by)
    refuse_to_ask_in_json(yes=yes, json=json)
    if not yes and not _agreed_to(f"Read {escape(feed)} again from its first entry?"):
        console().print("Nothing was done.")
        return 1

    async def work(database: Database) -> bool:
        async with database.transaction() as connection:
            restarted = await feed_stops.restart(connection, name, apply_again=apply_again)
            if restarted:
                await record(
                    connection,
                    "feeds.restart",
                    by=asked_by,
                    feed=name,
                    reason=reason,
                    apply_again=apply_again,
                )
            return restarted

    try:
        restarted = with_database(service, work)
    except feed_stops.ForgottenEvents:
        raise OperatorError(
            f"{feed} had more than {KEPT} entries, and older ones would have their effects a second time; where that"
            " may be, restart it with --apply-again."
        ) from None
    if not restarted:
        raise OperatorError(
            f"{feed} cannot be restarted: it moves, an entry stops it, or its provider gives positions; see"
            f" `bankside feeds show {feed}`."
        )
    if json:
        print_json({"feed": feed, "reason": reason, "asked_by": asked_by})
    else:
        console().print(f"{escape(feed)} is read from its first entry at its next try.")
    return 0


async def _feed_states(database: Database) -> list[FeedState]:
    async with database.transaction() as connection:
        return await feed_stops.feed_states(connection)


def _parsed(feed: str) -> tuple[str, str]:
    service, separator, name = feed.partition("/")
    if not separator or service not in SERVICES:
        raise OperatorError(
            f"A feed is one of these services, / and its name: {', '.join(SERVICES)}."
        )
    return service, name


def _agreed_to(question: str) -> bool:
    require_terminal()
    return agrees(question)


def _show_line(service: str, state: FeedState) -> None:
    line = f"{service}/{escape(state.feed)}  at {state.position}"
    if state.stop is not None:
        line += f"  [red]stands still[/] for {age(state.since, datetime.now(UTC))}"
        if state.stop.entry_position is not None:
            kind = escape(state.stop.entry_type or "of no type")
            line += f", at the entry at {state.stop.entry_position} ({kind})"
    console().print(line)


def _document(service: str, state: FeedState) -> dict[str, Any]:
    stop = state.stop
    return {
        "feed": f"{service}/{state.feed}",
        "position": state.position,
        "stop": None
        if stop is None
        else {
            "entry_position": stop.entry_position,
            "entry_type": stop.entry_type,
            "error": stop.error,
            "outline": msgspec.Raw(stop.outline.encode()) if stop.outline else None,
            "since": state.since,
            "tried_at": state.tried_at,
            "tries": state.tries,
        },
    }
