"""`bankside feeds …`: where each provider feed stands, and entries that it cannot get past."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import msgspec
from cyclopts import App

from libs.cli.decisions import Flag, is_agreed, reason_of
from libs.cli.output import age, console, escape, print_json
from libs.cli.pages import tell_unreachable
from libs.client.errors import OperatorError
from libs.client.operator_client import ask
from libs.contracts.operating import feeds as contract
from libs.contracts.operating.feeds import SERVICES, Feed, Service

app = App(name="feeds", help="Provider feeds: where they stand, entries that stop them.")


@app.command(name="list")
def list_feeds(*, stopped: Flag = False, json: Flag = False) -> int:
    """List the feeds of all services with the position up to which each was applied.

    Such as `bankside feeds list --stopped`.

    Args:
        stopped: Only those that stand still.
        json: Print one JSON document.
    """
    found = ask(contract.LIST_FEEDS, contract.ListFeedsOf(stopped=stopped))
    if json:
        print_json({"feeds": [_document(feed) for feed in found.feeds]})
        return tell_unreachable(found.unreachable)
    for feed in found.feeds:
        _show_line(feed)
    if not found.feeds and not found.unreachable:
        console().print("There is none.")
    return tell_unreachable(found.unreachable)


@app.command
def show(feed: str, /, *, json: Flag = False) -> int:
    """Show where a feed stands, the entry that stops it, and which entries were skipped.

    Of an entry there are its position, its type and the names and types of its fields; its values are the provider's
    to show.

    Such as `bankside feeds show ledger_read/financial`.

    Args:
        feed: As listed, such as `payments/core`.
        json: Print one JSON document.
    """
    service, name = _parsed(feed)
    state = ask(contract.GET_FEED, contract.FindFeedOf(service=service, feed=name))
    if json:
        print_json(_document(state) | {"skips": [skip.model_dump() for skip in state.skips]})
        return 0
    _show_line(state)
    out, now = console(), datetime.now(UTC)
    if state.stop is not None:
        tried = f"tried {state.stop.tries} times, last {age(state.stop.tried_at, now)} ago"
        out.print(f"  {escape(state.stop.error)}")
        out.print(f"  {tried}; fields: {escape(state.stop.outline or 'not known')}")
    for skip in state.skips:
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
    yes: Flag = False,
    json: Flag = False,
) -> int:
    """Have the entry skipped at which a feed stands still. What it reports is then never applied.

    The feed moves past the entry at its next try, within 30 s. Who asked for it, and why, is recorded.

    Such as `bankside feeds skip payments/core --position 4711 --reason "the bank says that it is void"`.

    Args:
        feed: As listed, such as `payments/core`.
        position: Of the entry, as shown.
        reason: Why it may be skipped, and what was done about what it reports.
        yes: Do not ask.
        json: Print one JSON document; needs --yes.
    """
    service, name = _parsed(feed)
    reason = reason_of(reason)
    question = f"Skip the entry at {position} of {escape(feed)}, for good?"
    if not is_agreed(question, yes=yes, json=json):
        return 1

    done = ask(
        contract.SKIP_ENTRY,
        contract.SkipEntryOf(service=service, feed=name, position=position, reason=reason),
    )
    if json:
        print_json(
            {"feed": feed, "position": position, "reason": reason, "asked_by": done.asked_by}
        )
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
    yes: Flag = False,
    json: Flag = False,
) -> int:
    """Have a feed read again from its provider's first entry, when the provider no longer knows where it goes on.

    For a feed that stands still without an entry that stops it, of a provider whose entries have ids. The last 10,000
    entries are passed by. A feed that had more is restarted with --apply-again only, since its older entries are
    applied a second time: subscribers get events of ledger_read again, under new ids, and payments keeps its
    contradictions again. Onboarding compares them with what it knows.

    Such as `bankside feeds restart payments/core --reason "the bank began its feed anew"`.

    Args:
        feed: As listed, such as `payments/core`.
        reason: Why, and what the provider said.
        apply_again: Also when older entries are applied a second time.
        yes: Do not ask.
        json: Print one JSON document; needs --yes.
    """
    service, name = _parsed(feed)
    reason = reason_of(reason)
    if not is_agreed(f"Read {escape(feed)} again from its first entry?", yes=yes, json=json):
        return 1

    done = ask(
        contract.RESTART_FEED,
        contract.RestartFeedOf(service=service, feed=name, reason=reason, apply_again=apply_again),
    )
    if json:
        print_json({"feed": feed, "reason": reason, "asked_by": done.asked_by})
    else:
        console().print(f"{escape(feed)} is read from its first entry at its next try.")
    return 0


def _parsed(feed: str) -> tuple[Service, str]:
    named, separator, name = feed.partition("/")
    service = next((one for one in SERVICES if one == named), None)
    if not separator or not name or service is None:
        raise OperatorError(
            f"A feed is one of these services, / and its name: {', '.join(SERVICES)}."
        )
    return service, name


def _show_line(feed: Feed) -> None:
    line = f"{feed.service}/{escape(feed.feed)}  at {feed.position}"
    if feed.stop is not None:
        line += f"  [red]stands still[/] for {age(feed.stop.since, datetime.now(UTC))}"
        if feed.stop.entry_position is not None:
            kind = escape(feed.stop.entry_type or "of no type")
            line += f", at the entry at {feed.stop.entry_position} ({kind})"
    console().print(line)


def _document(feed: Feed) -> dict[str, Any]:
    stop = feed.stop
    return {
        "feed": f"{feed.service}/{feed.feed}",
        "position": feed.position,
        "stop": None
        if stop is None
        else stop.model_dump()
        | {"outline": msgspec.Raw(stop.outline.encode()) if stop.outline else None},
    }
