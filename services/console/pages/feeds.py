"""Feeds of providers: where they stand, and the entry at which one stands still."""

from typing import Any

from libs.contracts.operating import feeds as o
from services.console.declarations import Action, DetailPage, ListPage, Subject


def _has_bad_entry(feed: Any) -> bool:
    return feed.stop is not None and feed.stop.entry_position is not None


def _stands_still(feed: Any) -> bool:
    return feed.stop is not None


SKIP = Action(
    title="Skip entry",
    path="/feeds/{feed}/skip",
    operation=o.SKIP_ENTRY,
    carries=("service", "position"),
    called=(("position", "stop.entry_position"),),
    effect="Skips the entry at which the feed stands still: what it reports is never applied, so that reconciliation"
    " may find a difference.",
    done="The entry is skipped at the next try.",
    when=_has_bad_entry,
    danger=True,
)
RESTART = Action(
    title="Read again",
    path="/feeds/{feed}/restart",
    operation=o.RESTART_FEED,
    carries=("service",),
    effect="Reads the feed again from the provider's first entry, and passes by the last 10,000 entries that were"
    " applied. A feed that had more is refused: `Apply again` applies its older entries a second time, so that"
    " subscribers get events of ledger_read again, under new ids, and payments keeps its contradictions again.",
    done="The feed is read from its first entry.",
    when=_stands_still,
    danger=True,
)

LIST = ListPage(
    path="/feeds",
    title="Feeds",
    about="The providers' feeds of events, and up to where each is applied.",
    operation=o.LIST_FEEDS,
    columns=(
        "feed",
        "service",
        "position",
        "stop.since",
        "stop.entry_type",
        "stop.error",
        "stop.tries",
    ),
    one="/feeds/{feed}?service={service}",
    items="feeds",
    sorted_by="",
    each=(SKIP, RESTART),
)
DETAIL = DetailPage(
    path="/feeds/{feed}",
    title="Feed",
    operation=o.GET_FEED,
    name="feed",
    parent=LIST,
    parts=("stop", "skips"),
    actions=(SKIP, RESTART),
)

SUBJECT = Subject(LIST, (DETAIL,))
