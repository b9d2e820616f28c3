"""What happens again and again is logged at once, and then once in a period."""

from __future__ import annotations

from libs.log_throttle import PERIOD_SECONDS, LogThrottle


def test_the_first_line_is_due_at_once_and_the_next_after_a_period_with_the_number_left_out() -> (
    None
):
    now = 1000.0
    throttle = LogThrottle(lambda: now)

    first = [throttle.left_out() for _ in range(3)]
    now += PERIOD_SECONDS
    later = [throttle.left_out() for _ in range(2)]

    assert first == [0, None, None]
    assert later == [2, None]
