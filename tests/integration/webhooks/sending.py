"""A poster whose names resolve as a test says, and whose patience is short."""

from __future__ import annotations

import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime

from services.webhook_dispatcher.adapters.allowance import Allowance
from services.webhook_dispatcher.adapters.callback_urls import CallbackPolicy
from services.webhook_dispatcher.adapters.lookups import Lookups
from services.webhook_dispatcher.adapters.poster import AiohttpPoster, Timeouts, open_poster
from services.webhook_dispatcher.ports import Post
from tests.support.names import Names

NAME = "hooks.example.com"
TENANT = "acme"
HERE = "127.0.0.0/8,::1/128"
PATIENT = Timeouts(connect=5, total=15)
SHORT = Timeouts(connect=0.3, total=0.5)
BODY = b'{"id": "evt_1"}'


@asynccontextmanager
async def poster(
    *,
    allow: str = HERE,
    names: Names | None = None,
    timeouts: Timeouts = PATIENT,
    ssl_context: ssl.SSLContext | None = None,
    connections: int = 64,
    connection_seconds: float = 60,
    lookup_seconds: float = 5,
    clock: Callable[[], datetime] = lambda: datetime.now(UTC),
) -> AsyncIterator[AiohttpPoster]:
    """By default every name is this machine, and this machine is allowed."""
    if names is None:
        names = Names({NAME: [["127.0.0.1"]]})
    async with open_poster(
        CallbackPolicy(Allowance.parse(allow)),
        connections=connections,
        connection_seconds=connection_seconds,
        timeouts=timeouts,
        lookups=Lookups(seconds=lookup_seconds, getaddrinfo=names),
        ssl_context=ssl_context,
        clock=clock,
    ) as opened:
        yield opened


def to(url: str, body: bytes = BODY, tenant: str = TENANT) -> Post:
    headers = {
        "Content-Type": "application/json",
        "webhook-id": "evt_1",
        "webhook-timestamp": "1760000000",
        "webhook-signature": "v1,c2lnbmF0dXJl",
    }
    return Post(tenant, url, headers, body)
