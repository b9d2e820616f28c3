"""Requests that wait when a process stops are answered in time, and so are those that come later."""

from __future__ import annotations

import asyncio

import pytest

from libs.contracts.errors import OutcomePending, Unavailable
from libs.messaging.request_deadlines import RequestDeadlines
from tests.support.pace import pace


async def wait_for_ever() -> None:
    await asyncio.Event().wait()


async def test_a_stop_ends_what_waits_and_what_comes_later() -> None:
    deadlines = RequestDeadlines()
    limited = asyncio.create_task(deadlines.within(3600, wait_for_ever(), Unavailable))
    unlimited = asyncio.create_task(deadlines.within(None, wait_for_ever(), OutcomePending))
    await asyncio.sleep(0)  # they begin

    deadlines.bring_forward(0)
    later = asyncio.create_task(deadlines.within(None, wait_for_ever(), OutcomePending))
    async with asyncio.timeout(5 * pace()):
        ended = await asyncio.gather(limited, unlimited, later, return_exceptions=True)

    assert [type(error) for error in ended] == [Unavailable, OutcomePending, OutcomePending]


async def test_a_stop_gives_no_request_more_time_than_it_had() -> None:
    deadlines = RequestDeadlines()
    short = asyncio.create_task(deadlines.within(0.01, wait_for_ever(), Unavailable))
    await asyncio.sleep(0)  # it begins

    deadlines.bring_forward(3600)

    async with asyncio.timeout(5 * pace()):
        with pytest.raises(Unavailable):
            await short


async def test_a_timeout_of_the_work_itself_is_left_as_it_is() -> None:
    async def times_out() -> None:
        raise TimeoutError

    with pytest.raises(TimeoutError):
        await RequestDeadlines().within(3600, times_out(), Unavailable)
