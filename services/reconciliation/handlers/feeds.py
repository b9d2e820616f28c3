"""How far our services have applied each feed, against the provider's newest entry."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from libs.persistence.engine import Database
from libs.providers.companies import Role
from libs.providers.feed_entries import FeedCursor
from services.reconciliation.handlers.comparison import Scan, suspects
from services.reconciliation.models import Difference, Finding, Scanned
from services.reconciliation.ports import Feeds
from services.reconciliation.repository import feed_watch

FOLLOWED: Mapping[str, Role] = {
    "onboarding/identity": Role.IDENTITY,
    "onboarding/financial": Role.FINANCIAL,
    "payments/core": Role.CORE,
    "ledger_read/financial": Role.FINANCIAL,
}
"""Every feed that a service follows, and the provider that it is of."""


class FeedComparison:
    """Keys are feeds.

    Args:
        still_seconds: a feed that has more entries and has not moved for this long stands still.
    """

    name = "feeds"
    starts_anew = frozenset({"all"})

    def __init__(self, database: Database, feeds: Feeds, *, still_seconds: float) -> None:
        self._database = database
        self._feeds = feeds
        self._still_seconds = still_seconds

    @property
    def scans(self) -> Mapping[str, Scan]:
        return {"all": self._all}

    async def _all(self, _: str | None, deadline: float) -> Scanned:
        findings = await self.look(list(FOLLOWED), deadline)
        return Scanned(len(findings), suspects(findings), None)

    async def look(self, keys: Sequence[str], deadline: float) -> Mapping[str, Finding]:
        # Our positions first: the provider's can only have grown since.
        applied = await self._feeds.applied(deadline)
        findings: dict[str, Finding] = {}
        for key in keys:
            ours = applied.get(key, FeedCursor(0))
            newest = await self._feeds.newest(FOLLOWED[key], ours, deadline)
            findings[key] = await self._judge(key, ours.position, newest)
        return findings

    async def _judge(self, feed: str, applied: int, newest: int) -> Finding:
        async with self._database.transaction() as connection:
            still = await feed_watch.still_seconds(
                connection, feed, applied, is_behind=applied < newest
            )
        # The values of a live feed move on between two looks; these facts do not.
        facts: dict[str, int]
        if applied > newest:
            kind, facts = "feed_went_back", {}
        elif applied < newest and still >= self._still_seconds:
            kind, facts = "feed_stands_still", {"position": applied}
        else:
            return []
        ours, theirs = {"position": applied}, {"newest": newest}
        return [Difference(kind, feed, {"feed": feed}, ours, theirs, facts)]
