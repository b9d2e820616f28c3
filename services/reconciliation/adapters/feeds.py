"""Positions in the providers' feeds: our services' over the broker, and the providers'."""

from __future__ import annotations

from collections.abc import Mapping

from libs.contracts import ledger_read_operations as ledger_read
from libs.contracts import onboarding_operations as onboarding
from libs.contracts import payments_operations as payments
from libs.contracts import reconciliation as r
from libs.contracts.principal import SERVICE
from libs.gathering import gather_or_cancel
from libs.handling.query_client import QueryClient
from libs.providers.companies import Role
from libs.providers.feed_entries import FeedCursor
from services.reconciliation.ports import NewestEntry

FEEDS = {
    "onboarding": onboarding.LIST_FEED_POSITIONS,
    "payments": payments.LIST_FEED_POSITIONS,
    "ledger_read": ledger_read.LIST_FEED_POSITIONS,
}


class FeedPositions:
    """See `ports.Feeds`."""

    def __init__(self, query_client: QueryClient, newest: Mapping[Role, NewestEntry]) -> None:
        self._query_client = query_client
        self._newest = newest

    async def applied(self, deadline: float) -> Mapping[str, FeedCursor]:
        replies = await gather_or_cancel(
            (
                self._query_client.query(
                    operation, SERVICE, r.ListFeedPositions(), r.FeedPositions, deadline
                )
                for operation in FEEDS.values()
            ),
            name="feed-positions",
        )
        return {
            f"{service}/{feed.feed}": FeedCursor(feed.position, feed.state)
            for service, reply in zip(FEEDS, replies, strict=True)
            for feed in reply.feeds
        }

    async def newest(self, role: Role, applied: FeedCursor, deadline: float) -> int:
        return await self._newest[role](applied, deadline)
