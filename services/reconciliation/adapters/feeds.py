"""Positions in the providers' feeds: our services' over the broker, the providers' over HTTP."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Literal

from libs.contracts import ledger_read_operations as ledger_read
from libs.contracts import onboarding_operations as onboarding
from libs.contracts import payments_operations as payments
from libs.contracts import reconciliation as r
from libs.contracts.errors import ProviderError
from libs.contracts.principal import SERVICE
from libs.handling.query_client import QueryClient
from libs.providers.http import ProviderClient
from services.reconciliation.adapters.providers import read

FEEDS = {
    "onboarding": onboarding.LIST_FEED_POSITIONS,
    "payments": payments.LIST_FEED_POSITIONS,
    "ledger_read": ledger_read.LIST_FEED_POSITIONS,
}


class FeedPositions:
    """See `ports.Feeds`."""

    def __init__(self, query_client: QueryClient, clients: Mapping[str, ProviderClient]) -> None:
        self._query_client = query_client
        self._clients = clients

    async def applied(self, deadline: float) -> Mapping[str, int]:
        replies = await asyncio.gather(
            *(
                self._query_client.query(
                    operation, SERVICE, r.ListFeedPositions(), r.FeedPositions, deadline
                )
                for operation in FEEDS.values()
            )
        )
        return {
            f"{service}/{feed.feed}": feed.position
            for service, reply in zip(FEEDS, replies, strict=True)
            for feed in reply.feeds
        }

    async def newest(self, api: Literal["identity", "core", "financial"], deadline: float) -> int:
        answer = await read(self._clients[api], "get_newest_event", "/events/newest", (), deadline)
        try:
            return int(answer["position"])
        except (KeyError, TypeError, ValueError) as error:
            raise ProviderError from error
