"""What many ask for one by one is done together."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from libs.batching import Batcher, TooManyWaiting
from tests.support.waiting import eventually


async def test_what_arrives_during_a_batch_goes_out_together_in_the_next() -> None:
    batches: list[list[int]] = []
    may_end = asyncio.Event()

    async def double(items: list[int]) -> list[int]:
        batches.append(items)
        await may_end.wait()
        return [2 * item for item in items]

    batcher = Batcher(double, name="double", limit=4)
    tasks = [asyncio.create_task(batcher.submit(n)) for n in range(7)]
    await eventually("a batch", lambda: nonempty(batches))
    may_end.set()

    assert await asyncio.gather(*tasks) == [0, 2, 4, 6, 8, 10, 12]
    assert [len(batch) for batch in batches] in ([1, 4, 2], [4, 3])


async def nonempty(items: list[Any]) -> bool:
    return bool(items)


async def test_a_failed_batch_fails_its_items_and_no_later_ones() -> None:
    async def refuse_odd(items: list[int]) -> list[int]:
        if items[0] % 2:
            raise ValueError
        return items

    batcher = Batcher(refuse_odd, name="even", limit=1)

    outcomes = await asyncio.gather(*(batcher.submit(n) for n in range(4)), return_exceptions=True)

    assert [type(outcome) for outcome in outcomes] == [int, ValueError, int, ValueError]


async def test_whoever_gave_up_is_left_out_and_a_full_queue_says_so() -> None:
    batches: list[list[int]] = []
    may_end = asyncio.Event()

    async def run(items: list[int]) -> list[int]:
        batches.append(items)
        await may_end.wait()
        return items

    batcher = Batcher(run, name="small", limit=4, waiting=2)
    first = asyncio.create_task(batcher.submit(1))
    await eventually("a batch", lambda: nonempty(batches))
    gives_up, stays = [asyncio.create_task(batcher.submit(n)) for n in (2, 3)]
    await asyncio.sleep(0)
    with pytest.raises(TooManyWaiting):
        await batcher.submit(4)
    gives_up.cancel()
    may_end.set()

    assert list(await asyncio.gather(first, stays)) == [1, 3]
    assert batches == [[1], [3]]
