"""How long the answer to a query may take."""

from __future__ import annotations

import pytest

from libs.handling.queries import seconds_for


@pytest.mark.parametrize(("left", "seconds"), [(25, 22), (5, 2.5), (2, 1), (-1, 0.05)])
def test_an_answer_may_take_what_is_left_but_for_a_margin(left: float, seconds: float) -> None:
    assert seconds_for(left) == seconds
