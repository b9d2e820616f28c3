"""When a delivery is tried again."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from services.webhook_dispatcher.engine.rules import RETRY_SECONDS, DeliverySettings
from services.webhook_dispatcher.engine.schedule import longest_seconds, next_attempt_at
from tests.support.with_each import with_each

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)


def seconds(number: float) -> timedelta:
    return timedelta(seconds=number)


@with_each(enumerate((5, 300, 1800, 7200, 18_000, 36_000, 50_400, 72_000, 86_400), start=1))
def test_the_pause_after_each_attempt_is_the_schedules_give_or_take_a_fifth(
    case: tuple[int, float],
) -> None:
    made, pause = case
    moments = [
        next_attempt_at(RETRY_SECONDS, made, NOW, None, lambda value=value: value)  # type: ignore[misc]
        for value in (0.0, 0.5, 1.0)
    ]

    assert moments == [NOW + seconds(pause * share) for share in (0.8, 1.0, 1.2)]


def test_after_the_tenth_attempt_there_is_none_whatever_the_endpoint_asks_for() -> None:
    assert next_attempt_at(RETRY_SECONDS, 10, NOW, NOW + seconds(60), lambda: 0.5) is None


@pytest.mark.parametrize(
    ("asked", "made", "pause"),
    [
        (120, 1, 120),
        (2, 1, 5),
        (-3600, 1, 5),
        (10 * 3600, 1, 10 * 3600),
        (10 * 3600, 7, 14 * 3600),  # the schedule's own pause is longer
    ],
)
def test_a_retry_after_lengthens_a_pause_that_is_shorter(
    asked: float, made: int, pause: float
) -> None:
    moment = next_attempt_at(RETRY_SECONDS, made, NOW, NOW + seconds(asked), lambda: 0.5)

    assert moment == NOW + seconds(pause)


def test_a_lease_that_an_attempt_could_outlast_is_refused() -> None:
    with pytest.raises(ValueError, match="longer than"):
        DeliverySettings(lease_seconds=15)


def test_the_longest_schedule_is_that_of_an_endpoint_that_asks_for_ten_hours_each_time() -> None:
    ten_hours = [36_000.0] * 5
    longer = [36_000 * 1.2, 50_400 * 1.2, 72_000 * 1.2, 86_400 * 1.2]

    assert longest_seconds(RETRY_SECONDS) == pytest.approx(sum(ten_hours + longer) + 10 * 15)
