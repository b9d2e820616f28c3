"""What attempts say of their endpoint."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from services.webhook_dispatcher.engine.health import after_attempt
from services.webhook_dispatcher.ports import Attempt, Verdict
from services.webhook_dispatcher.repository.endpoints import Health

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
MISSES = (Verdict.TIMED_OUT, Verdict.UNREACHABLE)


def seconds(number: float) -> timedelta:
    return timedelta(seconds=number)


def attempt(verdict: Verdict, at: datetime = NOW, *, duration_ms: int = 10) -> Attempt:
    return Attempt(verdict=verdict, attempted_at=at, duration_ms=duration_ms)


def after(health: Health, *attempts: Attempt) -> Health:
    for one in attempts:
        health = after_attempt(health, one, failed_for_good=False)
    return health


def test_five_misses_in_a_row_open_the_breaker_for_half_a_minute() -> None:
    four = after(Health(), *(attempt(verdict) for verdict in (*MISSES, *MISSES)))
    five = after(four, attempt(Verdict.TIMED_OUT, duration_ms=1000))

    assert four.open_until is None
    assert five.open_until == NOW + seconds(31)


@pytest.mark.parametrize("verdict", [Verdict.SUCCEEDED, Verdict.REFUSED, Verdict.GONE])
def test_any_answer_begins_the_count_anew_and_closes_the_breaker(verdict: Verdict) -> None:
    four = after(Health(), *(attempt(Verdict.TIMED_OUT) for _ in range(4)))
    closed = after(four, attempt(Verdict.TIMED_OUT))

    for health in (four, closed):
        opened = after(health, attempt(verdict))
        assert (opened.unreachable_in_a_row, opened.open_until) == (0, None)
        assert after(opened, attempt(Verdict.TIMED_OUT)).open_until is None


def test_what_was_under_way_when_the_breaker_opened_does_not_lengthen_its_pause() -> None:
    closed = after(Health(), *(attempt(Verdict.TIMED_OUT) for _ in range(16)))

    assert closed.open_until == NOW + seconds(30.01)


def test_probes_that_miss_double_the_pause_up_to_ten_minutes() -> None:
    health = after(Health(), *(attempt(Verdict.UNREACHABLE, duration_ms=0) for _ in range(5)))
    pauses = []
    for _ in range(7):
        assert health.open_until is not None
        at = health.open_until + seconds(1)
        health = after(health, attempt(Verdict.UNREACHABLE, at, duration_ms=0))
        assert health.open_until is not None
        pauses.append((health.open_until - at).total_seconds())

    assert pauses == [60, 120, 240, 480, 600, 600, 600]


def test_an_attempt_that_was_not_made_says_nothing_about_the_endpoint() -> None:
    four = after(Health(is_slow=True), *(attempt(Verdict.TIMED_OUT) for _ in range(4)))

    assert after(four, attempt(Verdict.NOT_TRIED)) == four


def test_a_forbidden_address_counts_as_one_that_was_not_reached() -> None:
    four = after(Health(), *(attempt(Verdict.UNREACHABLE) for _ in range(4)))

    assert after(four, attempt(Verdict.FORBIDDEN)) == after(four, attempt(Verdict.UNREACHABLE))


def test_an_endpoint_is_slow_from_five_seconds_on_until_it_answers_within_two() -> None:
    slow = after(Health(), attempt(Verdict.SUCCEEDED, duration_ms=5000))

    assert slow.is_slow
    assert after(slow, attempt(Verdict.SUCCEEDED, duration_ms=2000)).is_slow
    assert after(slow, attempt(Verdict.UNREACHABLE, duration_ms=1)).is_slow
    assert not after(slow, attempt(Verdict.REFUSED, duration_ms=1999)).is_slow


def test_successes_of_a_healthy_endpoint_are_noted_once_a_minute() -> None:
    first = after(Health(), attempt(Verdict.SUCCEEDED))

    assert after(first, attempt(Verdict.SUCCEEDED, NOW + seconds(59))) == first
    assert after(first, attempt(Verdict.SUCCEEDED, NOW + seconds(61))) != first


def test_a_success_forgets_every_failed_event_before_it() -> None:
    health = after_attempt(Health(), attempt(Verdict.REFUSED), failed_for_good=True)
    assert (health.failed_events, health.failing_since) == (1, NOW + seconds(0.01))

    health = after(health, attempt(Verdict.SUCCEEDED))

    assert (health.failed_events, health.failing_since) == (0, None)


def test_what_was_not_tried_for_a_reason_of_our_own_says_nothing_of_the_endpoint() -> None:
    not_tried = attempt(Verdict.NOT_TRIED, duration_ms=7000)

    health = after(Health(), *[not_tried] * 10)

    assert health == Health()
    assert after_attempt(health, not_tried, failed_for_good=True) == Health()


def test_a_success_soon_after_another_is_noted_where_a_failure_came_between() -> None:
    succeeded = after(Health(), attempt(Verdict.SUCCEEDED))
    again = after(succeeded, attempt(Verdict.SUCCEEDED, NOW + seconds(1)))
    failed = after(succeeded, attempt(Verdict.REFUSED, NOW + seconds(2)))
    well = after(failed, attempt(Verdict.SUCCEEDED, NOW + seconds(7)))

    assert again.last_success_at == succeeded.last_success_at, "most successes write nothing"
    assert well.last_failure_at is not None
    assert well.last_success_at is not None
    assert well.last_success_at > well.last_failure_at
