"""When a subscription becomes unavailable because its endpoint fails."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from services.webhook_dispatcher.engine.health import (
    may_become_unavailable,
    overdue_before,
    should_become_unavailable,
)
from services.webhook_dispatcher.engine.rules import RETRY_SECONDS
from services.webhook_dispatcher.engine.schedule import whole_seconds
from services.webhook_dispatcher.repository.endpoints import Health, OverdueDeliveries

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)


def seconds(number: float) -> timedelta:
    return timedelta(seconds=number)


def overdue(created: timedelta = timedelta(days=90), count: int = 0) -> OverdueDeliveries:
    return OverdueDeliveries(NOW - created, count)


def failing(**changes: Any) -> Health:
    usual = {
        "last_success_at": NOW - timedelta(days=5),
        "failing_since": NOW - timedelta(hours=24),
        "failed_events": 10,
    }
    return Health(**{**usual, **changes})


@pytest.mark.parametrize(("schedule_hours", "hours"), [(0.2, 24), (91, 91)])
def test_a_delivery_is_overdue_after_a_whole_schedule_and_no_sooner_than_after_a_day(
    schedule_hours: float, hours: int
) -> None:
    before = overdue_before(NOW, timedelta(hours=schedule_hours))

    assert before == NOW - timedelta(hours=hours)


def test_ten_failed_events_over_a_day_without_success_for_five_make_a_subscription_unavailable() -> (
    None
):
    assert may_become_unavailable(failing(), NOW)
    assert should_become_unavailable(failing(), overdue(), NOW)
    assert should_become_unavailable(failing(last_success_at=None), overdue(timedelta(days=5)), NOW)


@pytest.mark.parametrize(
    "health",
    [
        failing(last_success_at=NOW - timedelta(days=5) + seconds(1)),
        failing(failing_since=NOW - timedelta(hours=24) + seconds(1)),
        failing(failed_events=9),
    ],
)
def test_a_subscription_one_step_below_a_limit_stays_active(health: Health) -> None:
    assert not should_become_unavailable(health, overdue(), NOW)


def test_an_endpoint_that_never_succeeded_has_five_days_from_its_subscription() -> None:
    young = overdue(timedelta(days=5) - seconds(1))

    assert not should_become_unavailable(failing(last_success_at=None), young, NOW)


def test_events_that_wait_behind_the_breaker_for_a_whole_schedule_count_as_failed() -> None:
    waiting = Health(last_success_at=NOW - timedelta(days=6), open_until=NOW)

    assert may_become_unavailable(waiting, NOW)
    assert should_become_unavailable(waiting, overdue(count=10), NOW)
    assert not should_become_unavailable(waiting, overdue(count=9), NOW)
    assert whole_seconds(RETRY_SECONDS) > timedelta(hours=24).total_seconds()
