"""When an endpoint is taken for dead, and its subscription becomes unavailable (interface §8).

No success for 5 days, and at least 10 failed events over at least 24 hours. Behind an open breaker few attempts are
made, so events there seldom fail for good: one that has been due for as long as a whole schedule counts as failed too.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from services.webhook_dispatcher.repository.dead_endpoints import Standing
from services.webhook_dispatcher.repository.healths import Health

NO_SUCCESS = timedelta(days=5)
FAILED_EVENTS = 10
FAILED_OVER = timedelta(hours=24)


def may_be_dead(health: Health, now: datetime) -> bool:
    """Whether it is worth looking at more than its health."""
    failing = health.failed_events > 0 or health.open_until is not None
    return failing and not _succeeded_lately(health.last_success_at, now)


def is_dead(health: Health, standing: Standing, now: datetime) -> bool:
    """
    Args:
        standing: `overdue` counts what has been due for as long as a whole schedule, up to `FAILED_EVENTS`.
    """
    if _succeeded_lately(health.last_success_at or standing.known_since, now):
        return False
    if standing.overdue >= FAILED_EVENTS:
        return True  # each of them for longer than a day
    since = health.failing_since
    return (
        since is not None
        and now - since >= FAILED_OVER
        and health.failed_events + standing.overdue >= FAILED_EVENTS
    )


def _succeeded_lately(last: datetime | None, now: datetime) -> bool:
    return last is not None and now - last < NO_SUCCESS
