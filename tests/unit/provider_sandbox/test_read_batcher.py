from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any, cast

import pytest

from services.provider_sandbox.database import Connection, Database
from services.provider_sandbox.operations import BatchedRead, Refusal
from services.provider_sandbox.read_batcher import ReadBatcher


class Bank(Database):
    """Knows accounts whose ids are not empty; counts how often it is asked."""

    def __init__(self) -> None:
        self.asked: list[list[str]] = []
        self.is_away = False

    @asynccontextmanager
    async def reading(self) -> AsyncIterator[Any]:
        await asyncio.sleep(0)
        if self.is_away:
            raise ConnectionRefusedError
        yield self

    async def find(self, connection: Connection, ids: Sequence[str]) -> Mapping[str, object]:
        assert cast(Any, connection) is self
        self.asked.append(list(ids))
        if "unreadable" in ids:
            raise ValueError
        return {one: f"balance of {one}" for one in ids if one}


def reads_of(bank: Bank) -> ReadBatcher:
    operation = BatchedRead("get_balance", "/accounts/{id}/balance", bank.find, "account")
    return ReadBatcher(bank, operation)


async def test_those_that_wait_at_the_same_moment_are_looked_up_together_and_each_once() -> None:
    bank = Bank()
    reads = reads_of(bank)

    wanted = ["a", "b", "a", "c"]
    answers = await asyncio.gather(*map(reads.answer, wanted))

    assert answers == [f"balance of {one}" for one in wanted]
    assert sum(map(len, bank.asked)) == len(set(wanted))


async def test_what_is_not_there_is_refused_and_harms_no_neighbour() -> None:
    reads = reads_of(Bank())

    there, missing = await asyncio.gather(
        reads.answer("a"), reads.answer(""), return_exceptions=True
    )

    assert there == "balance of a"
    assert isinstance(missing, Refusal)
    assert missing.status == 404


async def test_a_database_that_is_away_is_told_to_all_and_the_next_are_tried_again() -> None:
    bank = Bank()
    reads = reads_of(bank)
    bank.is_away = True

    failed = await asyncio.gather(*map(reads.answer, "ab"), return_exceptions=True)
    bank.is_away = False

    assert [type(error) for error in failed] == [ConnectionRefusedError] * 2
    assert await reads.answer("a") == "balance of a"


async def test_one_that_cannot_be_looked_up_harms_no_neighbour() -> None:
    reads = reads_of(Bank())

    there, unreadable = await asyncio.gather(
        *map(reads.answer, ["a", "unreadable"]), return_exceptions=True
    )

    assert there == "balance of a"
    assert isinstance(unreadable, ValueError)


async def test_who_gave_up_is_passed_over() -> None:
    reads = reads_of(Bank())
    impatient, patient = (asyncio.create_task(reads.answer(one)) for one in "ab")
    await asyncio.sleep(0)

    impatient.cancel()

    assert await patient == "balance of b"
    with pytest.raises(asyncio.CancelledError):
        await impatient
