"""Provider feeds: the models, and the rows of services and of the gateway."""

from __future__ import annotations

from http import HTTPMethod
from typing import Annotated, Literal, get_args

from pydantic import Field

from libs.contracts import errors as e
from libs.contracts import fields as f
from libs.contracts.model import Command, Model
from libs.contracts.operating.pages import Write
from libs.contracts.operating.services import for_each_service
from libs.contracts.operation import Operation
from libs.contracts.principal import Role

Service = Literal["ledger_read", "onboarding", "payments"]
SERVICES: tuple[Service, ...] = get_args(Service)
"""Those that follow feeds."""


class ListFeeds(Command):
    """Args:
    stopped: only those that stand still.
    """

    stopped: f.Flag = False


class ListFeedsOf(ListFeeds):
    service: Service | None = None


class FeedStop(Model):
    """Why a feed stands still.

    Args:
        entry_position: of the entry at fault; null when no entry is, and there is nothing to skip.
        error: a sentence without values of the entry.
        outline: the entry's fields and their types, as JSON.
    """

    entry_position: int | None
    entry_type: str | None
    error: str
    outline: str | None
    since: f.UtcDateTime
    tried_at: f.UtcDateTime
    tries: int


class Feed(Model):
    """`position`: up to which it was applied."""

    service: str
    feed: str
    position: int
    stop: FeedStop | None


class Feeds(Model):
    feeds: list[Feed]


class GatheredFeeds(Feeds):
    """`unreachable`: the services that did not answer."""

    unreachable: list[str]


class FindFeed(Command):
    feed: f.Text


class FindFeedOf(FindFeed):
    service: Service


class FeedSkip(Model):
    """An entry that an operator decided to skip; `skipped_at` is null until the feed has moved past it."""

    position: int
    reason: str
    asked_by: str
    asked_at: f.UtcDateTime
    entry_type: str | None
    error: str
    skipped_at: f.UtcDateTime | None


class FeedWithSkips(Feed):
    """The last 20 decisions, the latest position first."""

    skips: list[FeedSkip]


class SkipEntry(Write):
    """`position`: of the entry at which the feed stands still."""

    feed: f.Text
    position: Annotated[int, Field(ge=0, lt=2**63)]


class SkipEntryOf(SkipEntry):
    service: Service


class SkipRequested(Model):
    service: str
    feed: str
    position: int
    reason: str
    asked_by: str


class RestartFeed(Write):
    """`apply_again`: also when older entries are applied a second time."""

    feed: f.Text
    apply_again: bool = False


class RestartFeedOf(RestartFeed):
    service: Service


class FeedRestarted(Model):
    service: str
    feed: str
    reason: str
    asked_by: str


LIST_OF = for_each_service(
    SERVICES, "list_feeds", command=ListFeeds, reply=Feeds, summary="Where its feeds stand"
)
FIND_OF = for_each_service(
    SERVICES,
    "find_feed",
    command=FindFeed,
    reply=FeedWithSkips,
    errors=(e.NotFound,),
    summary="Where a feed stands, and which entries were skipped",
)
SKIP_OF = for_each_service(
    SERVICES,
    "skip_entry",
    command=SkipEntry,
    reply=SkipRequested,
    errors=(e.InvalidState,),
    changes=True,
    summary="Skip the entry at which a feed stands still",
)
RESTART_OF = for_each_service(
    SERVICES,
    "restart_feed",
    command=RestartFeed,
    reply=FeedRestarted,
    errors=(e.InvalidState,),
    changes=True,
    summary="Read a feed again from its provider's first entry",
)
OPERATIONS = tuple(row for rows in (LIST_OF, FIND_OF, SKIP_OF, RESTART_OF) for row in rows.values())

LIST_FEEDS = Operation(
    name="gateway.list_feeds",
    method=HTTPMethod.GET,
    path="/operator/feeds",
    role=Role.VIEWER,
    command=ListFeedsOf,
    reply=GatheredFeeds,
    message="Feeds found",
    summary="List the feeds of all services, and where they stand",
    extension=True,
)
GET_FEED = Operation(
    name="gateway.get_feed",
    method=HTTPMethod.GET,
    path="/operator/feeds/{feed}",
    role=Role.VIEWER,
    command=FindFeedOf,
    reply=FeedWithSkips,
    message="Feed found",
    errors=(e.NotFound,),
    summary="Get where a feed of a service stands, the entry that stops it, and which entries were skipped",
    extension=True,
)
SKIP_ENTRY = Operation(
    name="gateway.skip_entry",
    method=HTTPMethod.POST,
    path="/operator/feeds/{feed}/skip",
    role=Role.OPERATOR,
    command=SkipEntryOf,
    reply=SkipRequested,
    message="Entry is skipped at the next try",
    errors=(e.NotFound, e.InvalidState),
    summary="Skip the entry at which a feed stands still: what it reports is never applied",
    extension=True,
)
RESTART_FEED = Operation(
    name="gateway.restart_feed",
    method=HTTPMethod.POST,
    path="/operator/feeds/{feed}/restart",
    role=Role.OPERATOR,
    command=RestartFeedOf,
    reply=FeedRestarted,
    message="Feed is read from its first entry",
    errors=(e.NotFound, e.InvalidState),
    summary="Read a feed that stands still again from its provider's first entry",
    extension=True,
)
GATEWAY_OPERATIONS = (LIST_FEEDS, GET_FEED, SKIP_ENTRY, RESTART_FEED)
