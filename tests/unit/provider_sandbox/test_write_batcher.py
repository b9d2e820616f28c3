from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Any, NoReturn

import pytest

from services.provider_sandbox import write_batcher
from services.provider_sandbox.database import Connection, Database
from services.provider_sandbox.idempotency import Request
from services.provider_sandbox.operations import BatchedWrite, Nothing
from services.provider_sandbox.write_batcher import WriteBatcher
from tests.support.pace import pace


class AwayDatabase(Database):
    """A database that cannot be reached."""

    def __init__(self) -> None:
        self.asked = 0

    def transaction(self) -> NoReturn:
        self.asked += 1
        raise ConnectionRefusedError


async def never(_: Connection, wanted: Sequence[tuple[str, Nothing]]) -> Sequence[object]:
    raise AssertionError(f"{len(wanted)} were carried out")


OPERATION = BatchedWrite("send_wire", "/wires", never, Nothing, re.compile(".*"))


def request(number: int) -> Request:
    return Request("core", str(number), "send_wire", "/core/wires", {})


@asynccontextmanager
async def running(work: WriteBatcher) -> AsyncIterator[None]:
    task: asyncio.Task[Any] = asyncio.create_task(work.run())
    yield
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task


async def test_every_caller_is_told_when_the_database_is_away_and_the_next_are_tried_again() -> (
    None
):
    database = AwayDatabase()
    work = WriteBatcher(database, OPERATION)

    async with asyncio.timeout(5 * pace()), running(work):
        for _ in range(2):
            answers = await asyncio.gather(
                *(work.answer(request(number), Nothing()) for number in range(3)),
                return_exceptions=True,
            )
            assert [type(answer) for answer in answers] == [ConnectionRefusedError] * 3

    assert database.asked == 2, "three at once are one transaction"


async def test_who_has_waited_too_long_or_comes_to_a_full_queue_is_not_served(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(write_batcher, "MOST_WAITING", 2)
    monkeypatch.setattr(write_batcher, "QUEUE_SECONDS", -1)
    database = AwayDatabase()
    work = WriteBatcher(database, OPERATION)
    waiting = [asyncio.create_task(work.answer(request(number), Nothing())) for number in range(2)]
    await asyncio.sleep(0)

    with pytest.raises(TimeoutError, match="too many"):
        await work.answer(request(2), Nothing())
    async with asyncio.timeout(5 * pace()), running(work):
        answers = await asyncio.gather(*waiting, return_exceptions=True)

    assert [type(answer) for answer in answers] == [TimeoutError] * 2
    assert database.asked == 0
