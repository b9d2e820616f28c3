"""What attempts say of their endpoint."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from services.webhook_dispatcher.engine.health import after_attempt
from services.webhook_dispatcher.ports import Attempt, AttemptOutcome
from services.webhook_dispatcher.repository.endpoints import Health

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
MISSES = (AttemptOutcome.TIMED_OUT, AttemptOutcome.UNREACHABLE)


def seconds(number: float) -> timedelta:
    return timedelta(seconds=number)


def attempt(outcome: AttemptOutcome, at: datetime = NOW, *, duration_ms: int = 10) -> Attempt:
    return Attempt(outcome=outcome, attempted_at=at, duration_ms=duration_ms)


def after(health: Health, *attempts: Attempt) -> Health:
    for one in attempts:
        health = after_attempt(health, one, failed_for_good=False)
    return health


def test_five_misses_in_a_row_open_the_breaker_for_half_a_minute() -> None:
    four = after(Health(), *(attempt(outcome) for outcome in (*MISSES, *MISSES)))
    five = after(four, attempt(AttemptOutcome.TIMED_OUT, duration_ms=1000))

    assert four.open_until is None
    assert five.open_until == NOW + seconds(31)


@pytest.mark.parametrize(
    "outcome", [AttemptOutcome.SUCCEEDED, AttemptOutcome.REFUSED, AttemptOutcome.GONE]
)
def test_any_answer_begins_the_count_anew_and_closes_the_breaker(outcome: AttemptOutcome) -> None:
    four = after(Health(), *(attempt(AttemptOutcome.TIMED_OUT) for _ in range(4)))
    closed = after(four, attempt(AttemptOutcome.TIMED_OUT))

    for health in (four, closed):
        opened = after(health, attempt(outcome))
        assert (opened.unreachable_in_a_row, opened.open_until) == (0, None)
        assert after(opened, attempt(AttemptOutcome.TIMED_OUT)).open_until is None


def test_what_was_under_way_when_the_breaker_opened_does_not_lengthen_its_pause() -> None:
    closed = after(Health(), *(attempt(AttemptOutcome.TIMED_OUT) for _ in range(16)))

    assert closed.open_until == NOW + seconds(30.01)


def test_probes_that_miss_double_the_pause_up_to_ten_minutes() -> None:
    health = after(
        Health(), *(attempt(AttemptOutcome.UNREACHABLE, duration_ms=0) for _ in range(5))
    )
    pauses = []
    for _ in range(7):
        assert health.open_until is not None
        at = health.open_until + seconds(1)
        health = after(health, attempt(AttemptOutcome.UNREACHABLE, at, duration_ms=0))
        assert health.open_until is not None
        pauses.append((health.open_until - at).total_seconds())

    assert pauses == [60, 120, 240, 480, 600, 600, 600]


def test_an_attempt_that_was_not_made_says_nothing_about_the_endpoint() -> None:
    four = after(Health(is_slow=True), *(attempt(AttemptOutcome.TIMED_OUT) for _ in range(4)))

    assert after(four, attempt(AttemptOutcome.NOT_TRIED)) == four


def test_a_forbidden_address_counts_as_one_that_was_not_reached() -> None:
    four = after(Health(), *(attempt(AttemptOutcome.UNREACHABLE) for _ in range(4)))

    assert after(four, attempt(AttemptOutcome.FORBIDDEN)) == after(
        four, attempt(AttemptOutcome.UNREACHABLE)
    )


def test_an_endpoint_is_slow_from_five_seconds_on_until_it_answers_within_two() -> None:
    slow = after(Health(), attempt(AttemptOutcome.SUCCEEDED, duration_ms=5000))

    assert slow.is_slow
    assert after(slow, attempt(AttemptOutcome.SUCCEEDED, duration_ms=2000)).is_slow
    assert after(slow, attempt(AttemptOutcome.UNREACHABLE, duration_ms=1)).is_slow
    assert not after(slow, attempt(AttemptOutcome.REFUSED, duration_ms=1999)).is_slow


def test_successes_of_a_healthy_endpoint_are_noted_once_a_minute() -> None:
    first = after(Health(), attempt(AttemptOutcome.SUCCEEDED))

    assert after(first, attempt(AttemptOutcome.SUCCEEDED, NOW + seconds(59))) == first
    assert after(first, attempt(AttemptOutcome.SUCCEEDED, NOW + seconds(61))) != first


def test_a_success_forgets_every_failed_event_before_it() -> None:
    health = after_attempt(Health(), attempt(AttemptOutcome.REFUSED), failed_for_good=True)
    assert (health.failed_events, health.failing_since) == (1, NOW + seconds(0.01))

    health = after(health, attempt(AttemptOutcome.SUCCEEDED))

    assert (health.failed_events, health.failing_since) == (0, None)


def test_what_was_not_tried_for_a_reason_of_our_own_says_nothing_of_the_endpoint() -> None:
    not_tried = attempt(AttemptOutcome.NOT_TRIED, duration_ms=7000)

    health = after(Health(), *[not_tried] * 10)

    assert health == Health()
    assert after_attempt(health, not_tried, failed_for_good=True) == Health()


def test_a_success_soon_after_another_is_noted_where_a_failure_came_between() -> None:
    succeeded = after(Health(), attempt(AttemptOutcome.SUCCEEDED))
    again = after(succeeded, attempt(AttemptOutcome.SUCCEEDED, NOW + seconds(1)))
    failed = after(succeeded, attempt(AttemptOutcome.REFUSED, NOW + seconds(2)))
    well = after(failed, attempt(AttemptOutcome.SUCCEEDED, NOW + seconds(7)))

    assert again.last_success_at == succeeded.last_success_at, "most successes write nothing"
    assert well.last_failure_at is not None
    assert well.last_success_at is not None
    assert well.last_success_at > well.last_failure_at
