from __future__ import annotations

import random
from datetime import UTC, datetime
from itertools import accumulate

from hypothesis import given
from hypothesis import strategies as st

from services.provider_sandbox.history import invent


@given(seed=st.integers(), count=st.integers(min_value=1, max_value=300))
def test_an_invented_past_never_takes_out_more_than_there_is(seed: int, count: int) -> None:
    moments = [datetime(2025, 1, 1, tzinfo=UTC)] * count

    past = list(invent(moments, random.Random(seed)))

    assert len(past) == count
    assert all(one.amount != 0 for one in past)
    assert min(accumulate(one.amount for one in past)) >= 0


def test_an_invented_past_has_no_debit_of_a_wire_that_the_bank_does_not_hold() -> None:
    moments = [datetime(2025, 1, 1, tzinfo=UTC)] * 5_000

    past = invent(moments, random.Random(7))

    assert {one.type for one in past if one.amount < 0} == {"withdrawal", "ach", "fee"}
