"""The first page: what waits for a person on top, then the traffic of the last hour and what waits in queues.

It renews itself while it is open.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Generic

from aiohttp import web

from libs.contracts.errors import BanksideError, SessionEnded
from libs.contracts.operating.overview import (
    GET_OVERVIEW,
    MOST_COUNTED,
    GetOverview,
    Overview,
    QueueDepth,
)
from libs.contracts.operating.traffic import GET_TRAFFIC, GetTraffic, Traffic
from libs.contracts.operation import Operation
from libs.gathering import gather_or_cancel
from libs.runtime.routes import Routes
from services.console.charts import Chart, chart
from services.console.failures import sentence
from services.console.gateway import C, OperatorApi, R
from services.console.pages.overview import WORDS
from services.console.rendering import Renderer
from services.console.visits import visit_of

RENEWALS = 60
"""A page stops renewing itself after this many: each renewal keeps the session from its idle timeout."""
LIVE = "live"
MINUTES = 61
"""The last hour, and the present minute."""


@dataclass(frozen=True, slots=True)
class Waits:
    """Of one kind, in one service."""

    kind: str
    title: str
    path: str
    service: str
    count: str
    oldest_at: datetime | None


@dataclass(frozen=True, slots=True)
class Answer(Generic[R]):
    """An answer, or the sentence that says why there is none."""

    data: R | None
    failure: str | None


class OverviewPage:
    def __init__(self, renderer: Renderer) -> None:
        self._renderer = renderer

    def add(self, routes: Routes) -> None:
        routes.add_get("/", self._page)

    async def _page(self, request: web.Request) -> web.Response:
        operators = visit_of(request).operators
        answers: Sequence[Answer[Any]] = await gather_or_cancel(
            (
                _answer(operators, GET_OVERVIEW, GetOverview()),
                _answer(operators, GET_TRAFFIC, GetTraffic(minutes=MINUTES)),
            ),
            name="overview",
        )
        waiting, hour = answers
        overview: Overview | None = waiting.data
        traffic: Traffic | None = hour.data
        context: dict[str, Any] = {
            "failure": waiting.failure,
            "charts": charts_of(traffic) if traffic else [],
            "queue_charts": queue_charts_of(traffic) if traffic else [],
            "no_traffic": hour.failure,
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


async def _answer(operators: OperatorApi, operation: Operation[C, R], command: C) -> Answer[R]:
    try:
        data = await operators.ask(operation, command)
        return Answer(data, None)
    except SessionEnded:
        raise
    except BanksideError as error:
        return Answer(None, sentence(error))


def charts_of(traffic: Traffic) -> list[Chart]:
    """Without the present minute, which is not over."""
    minutes = traffic.minutes[:-1]
    times = [minute.minute for minute in minutes]
    slow = [_percentile(minute.latency, traffic.bounds_ms) for minute in minutes]
    return [
        chart("requests", "Requests", [minute.requests for minute in minutes], times, "a minute"),
        chart(
            "refused", "Refused (4xx)", [minute.refused for minute in minutes], times, "a minute"
        ),
        chart("failed", "Failed (5xx)", [minute.failed for minute in minutes], times, "a minute"),
        chart("latency", "Latency (p95)", slow, times, "ms", nothing="no requests"),
    ]


def queue_charts_of(traffic: Traffic) -> list[Chart]:
    """Messages that wait, of each service."""
    times = [minute.minute for minute in traffic.minutes[:-1]]
    return [
        chart(f"queue-{each.service}", each.service, each.messages[:-1], times)
        for each in traffic.queues
    ]


def _percentile(counts: Sequence[int], bounds: Sequence[int]) -> float | None:
    """The bound within which 95 % of the requests of a minute were answered; None without requests."""
    wanted, seen = sum(counts) * 0.95, 0
    for count, bound in zip(counts, bounds, strict=False):
        seen += count
        if seen and seen >= wanted:
            return float(bound)
    return None


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
