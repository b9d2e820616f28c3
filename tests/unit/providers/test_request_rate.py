"""Requests at a rate: spaced, however many are wanted at once."""

from __future__ import annotations

import asyncio
import time

from libs.providers.request_rate import RequestRate
from tests.unit.providers.conftest import soon


async def test_requests_that_are_wanted_at_once_begin_one_after_another_at_the_rate() -> None:
    rate = RequestRate(100)
    begun_at = time.monotonic()

    admitted = await asyncio.gather(*(rate.turn(soon(60)) for _ in range(11)))

    assert all(admitted)
    assert time.monotonic() - begun_at > 0.099, "ten hundredths, less what timers may be early"


async def test_a_request_whose_turn_comes_after_its_deadline_is_not_made_and_delays_no_other() -> (
    None
):
    rate = RequestRate(1 / 3600)
    await rate.turn(soon())

    refused = [await rate.turn(soon()) for _ in range(3)]
    waits = asyncio.create_task(rate.turn(soon(2 * 3600)))
    await asyncio.sleep(0)
    too_late = await rate.turn(soon(1.5 * 3600))

    assert refused == [False] * 3
    assert not waits.done(), "its turn comes an hour after the first one's"
    assert not too_late
    waits.cancel()
