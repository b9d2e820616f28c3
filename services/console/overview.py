"""The first page: what waits for a person on top, then what waits in queues. It renews itself while it is looked at."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from aiohttp import web

from libs.contracts.errors import BanksideError, SessionEnded
from libs.contracts.operating.overview import (
    GET_OVERVIEW,
    MOST_COUNTED,
    GetOverview,
    Overview,
    QueueDepth,
)
from services.console.failures import sentence
from services.console.pages.overview import WORDS
from services.console.rendering import Renderer
from services.console.visits import visit_of

RENEWALS = 60
"""After so many a page stops to renew itself: each renewal keeps the session from its idle timeout."""
LIVE = "live"


@dataclass(frozen=True, slots=True)
class Waits:
    """Of one kind, in one service."""

    kind: str
    title: str
    path: str
    service: str
    count: str
    oldest_at: datetime | None


class OverviewPage:
    def __init__(self, renderer: Renderer) -> None:
        self._renderer = renderer

    def add(self, router: web.UrlDispatcher) -> None:
        router.add_get("/", self._page)

    async def _page(self, request: web.Request) -> web.Response:
        failure, overview = None, None
        try:
            overview = await visit_of(request).operators.ask(GET_OVERVIEW, GetOverview())
        except SessionEnded:
            raise
        except BanksideError as error:
            failure = sentence(error)
        context: dict[str, Any] = {
            "failure": failure,
            "waiting": waiting_in(overview) if overview else [],
            "queues": queues_in(overview) if overview else [],
            "without_queues": [s.service for s in overview.services if s.queues is None]
            if overview
            else [],
            "unreachable": overview.unreachable if overview else [],
            "left": _left(request),
        }
        if request.query.get("part") == LIVE:
            return self._renderer.part(request, "_live.html", **context)
        return self._renderer.page(request, "overview.html", **context)


def waiting_in(overview: Overview) -> list[Waits]:
    """The oldest first."""
    found = [
        Waits(
            waiting.kind.value,
            *WORDS[waiting.kind],
            service.service,
            f"{waiting.count:,}{' or more' if waiting.count >= MOST_COUNTED else ''}",
            waiting.oldest_at,
        )
        for service in overview.services
        for waiting in service.waiting
        if waiting.count
    ]
    return sorted(found, key=lambda waits: (waits.oldest_at is None, str(waits.oldest_at)))


def queues_in(overview: Overview) -> Sequence[QueueDepth]:
    """The fullest first."""
    found = [queue for service in overview.services for queue in service.queues or ()]
    return sorted(found, key=lambda queue: -queue.messages)


def _left(request: web.Request) -> int:
    """How many more renewals there are."""
    text = request.query.get("left", "")
    left = int(text) if text.isascii() and text.isdigit() and len(text) < 4 else RENEWALS
    return min(left, RENEWALS)
