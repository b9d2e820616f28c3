"""How long a session may be without a confirm, after sessions that were lost for want of one."""

from __future__ import annotations

from libs.messaging.broker import UnconfirmedLimit
from libs.messaging.session import CONFIRMS_NOTHING, UNCONFIRMED_SECONDS


def test_each_session_without_a_confirm_doubles_the_limit_up_to_its_bound() -> None:
    limit = UnconfirmedLimit()

    seconds = []
    for _ in range(4):
        seconds.append(limit.seconds)
        limit.session_ended(CONFIRMS_NOTHING, 6.0)

    assert seconds == [UNCONFIRMED_SECONDS, 10.0, 20.0, 20.0]


def test_another_loss_leaves_the_limit() -> None:
    limit = UnconfirmedLimit()
    limit.session_ended(CONFIRMS_NOTHING, 6.0)

    limit.session_ended("connection closed", 3.0)

    assert limit.seconds == 10.0


def test_after_a_session_that_lasted_the_limit_is_the_first_one() -> None:
    limit = UnconfirmedLimit()
    limit.session_ended(CONFIRMS_NOTHING, 6.0)

    limit.session_ended(CONFIRMS_NOTHING, 600.0)

    assert limit.seconds == UNCONFIRMED_SECONDS
