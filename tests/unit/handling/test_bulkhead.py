"""Room for one kind of work."""

from __future__ import annotations

import asyncio

import pytest

from libs.contracts.errors import Unavailable
from libs.handling.bulkhead import Bulkhead


class Work:
    """Calls through a bulkhead that stay inside until they are let go."""

    def __init__(self, bulkhead: Bulkhead) -> None:
        self._bulkhead = bulkhead
        self.inside = 0
        self.let_go = asyncio.Event()

    async def __call__(self, tenant: str = "anvil") -> None:
        async with self._bulkhead.slot(tenant):
            self.inside += 1
            await self.let_go.wait()

    async def start(self, count: int, tenant: str = "anvil") -> list[asyncio.Task[None]]:
        tasks = [asyncio.create_task(self(tenant)) for _ in range(count)]
        await asyncio.sleep(0)
        return tasks


async def test_so_many_are_inside_and_the_others_follow() -> None:
    work = Work(Bulkhead(2, waiting=6))

    tasks = await work.start(5)

    assert work.inside == 2
    work.let_go.set()
    await asyncio.gather(*tasks)
    assert work.inside == 5


async def test_more_than_may_wait_are_turned_away() -> None:
    work = Work(Bulkhead(1, waiting=3))
    tasks = [*await work.start(2), *await work.start(1, "bolt"), *await work.start(1, "cog")]

    with pytest.raises(Unavailable):
        await work("dye")

    work.let_go.set()
    await asyncio.gather(*tasks)


async def test_one_tenant_leaves_places_to_wait_at_for_others() -> None:
    work = Work(Bulkhead(1, waiting=4))
    tasks = await work.start(3)

    with pytest.raises(Unavailable):
        await work()

    tasks += await work.start(2, "bolt")
    work.let_go.set()
    await asyncio.gather(*tasks)
    assert work.inside == 5


async def test_one_that_gives_up_makes_room() -> None:
    work = Work(Bulkhead(1, waiting=1))
    inside, waiting = await work.start(2)

    waiting.cancel()
    await asyncio.wait({waiting})

    (another,) = await work.start(1)
    inside.cancel()
    work.let_go.set()
    await another
    assert work.inside == 2


async def test_calls_that_wait_for_their_own_tenant_are_not_before_those_of_others() -> None:
    work = Work(Bulkhead(2, waiting=8, at_once_of_tenant=1))
    tasks = await work.start(4)
    inside_of_one = work.inside

    tasks += await work.start(1, "bolt")

    assert (inside_of_one, work.inside) == (1, 2)
    work.let_go.set()
    await asyncio.gather(*tasks)
    assert work.inside == 5
    (another,) = await work.start(1)
    await another


async def test_a_call_in_parts_lets_others_run_in_between_and_keeps_its_place() -> None:
    bulkhead, parts = Bulkhead(1, waiting=2), list[str]()

    async def call(name: str) -> None:
        async with bulkhead.place("anvil") as turn:
            for _ in range(2):
                async with turn():
                    parts.append(name)
                    await asyncio.sleep(0)

    calls = [asyncio.create_task(call(name)) for name in ("first", "second")]
    await asyncio.sleep(0)
    full_with_both = bulkhead.is_full("anvil")

    await asyncio.gather(*calls)

    assert full_with_both
    assert parts == ["first", "second"] * 2
