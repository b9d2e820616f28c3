"""Provider feeds: the models, and the rows of services and of the gateway."""

from __future__ import annotations

from http import HTTPMethod
from typing import Annotated, Literal, get_args

from pydantic import Field

from libs.contracts import errors as e
from libs.contracts import fields as f
from libs.contracts.model import Command, Model
from libs.contracts.operating.pages import Write
from libs.contracts.operating.services import for_each_service, of_services
from libs.contracts.operation import Operation
from libs.contracts.principal import Role

Service = Literal["ledger_read", "onboarding", "payments"]
SERVICES: tuple[Service, ...] = get_args(Service)
"""Those that follow feeds."""


class ListFeeds(Command):
    """How far the service has applied what providers report.

    Args:
        stopped: only those that stand still.
    """

    stopped: f.Flag = False


class ListFeedsOf(ListFeeds):
    """How far services have applied what providers report."""

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
    """The entry's type, in the provider's words; null when no entry is at fault."""
    error: str
    outline: str | None
    since: f.UtcDateTime
    """Since when the feed stands still."""
    tried_at: f.UtcDateTime
    """When it was tried last."""
    tries: int
    """How often it was tried since."""


class Feed(Model):
    """A feed of a provider, which one service follows."""

    service: str
    feed: str
    position: int
    stop: FeedStop | None
    """Why the feed stands still; null while it moves."""


class Feeds(Model):
    feeds: list[Feed]
    """The feeds."""


class GatheredFeeds(Feeds):
    """The feeds of every service."""

    unreachable: list[str]


class FindFeed(Command):
    """A feed with what operators decided about its entries."""

    feed: f.Text


class FindFeedOf(FindFeed):
    """A feed with what operators decided about its entries."""

    service: Service


class FeedSkip(Model):
    """An entry that an operator decided to skip."""

    position: int
    reason: str
    """The reason that the operator gave."""
    asked_by: str
    """The operator."""
    asked_at: f.UtcDateTime
    """When it was decided."""
    entry_type: str | None
    """The entry's type, in the provider's words."""
    error: str
    """Why the feed stood still."""
    skipped_at: f.UtcDateTime | None
    """When the feed moved past it; null until then."""


class FeedWithSkips(Feed):
    """The last 20 decisions, the latest position first."""

    skips: list[FeedSkip]
    """Entries that operators decided to skip."""


class SkipEntry(Write):
    """Skip the entry at which a feed stands still."""

    feed: f.Text
    position: Annotated[int, Field(ge=0, lt=2**63)]
    """The `entry_position` at which the feed stands still."""


class SkipEntryOf(SkipEntry):
    """Skip the entry at which a feed stands still. The feed moves on within seconds."""

    service: Service


class SkipRequested(Model):
    """A decision to skip an entry."""

    service: str
    feed: str
    position: int
    """The entry's."""
    reason: str
    """The reason that the operator gave."""
    asked_by: str
    """The operator."""


class RestartFeed(Write):
    """Read a feed anew, after the provider lost its place."""

    feed: f.Text
    apply_again: bool = False
    """Also when older entries are then applied a second time."""


class RestartFeedOf(RestartFeed):
    """Read a feed anew, after the provider lost its place."""

    service: Service


class FeedRestarted(Model):
    """A feed that begins anew."""

    service: str
    feed: str
    reason: str
    """The reason that the operator gave."""
    asked_by: str
    """The operator."""


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
OPERATIONS = of_services(LIST_OF, FIND_OF, SKIP_OF, RESTART_OF)

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
