from __future__ import annotations

import asyncio
import math
from types import SimpleNamespace
from typing import Any, NoReturn

import asyncpg
import pytest

from libs.handling import periodic
from libs.handling.periodic import repeat


class Stop(Exception):
    pass


async def test_a_task_goes_on_when_the_database_was_away() -> None:
    calls = 0

    async def act() -> None:
        nonlocal calls
        calls += 1
        if calls < 3:
            raise asyncpg.PostgresConnectionError
        raise Stop

    with pytest.raises(Stop):
        await repeat("task", act, pause_seconds=0)

    assert calls == 3


async def test_another_error_ends_it() -> None:
    async def act() -> NoReturn:
        raise asyncpg.UndefinedTableError

    with pytest.raises(asyncpg.UndefinedTableError):
        await repeat("task", act, pause_seconds=0)


@pytest.mark.parametrize(("longest", "at_least", "at_most"), [(math.inf, 1, 3600), (0.7, 0.7, 0.7)])
async def test_after_a_call_that_took_long_the_pause_is_longer_up_to_its_bound(
    monkeypatch: pytest.MonkeyPatch, longest: float, at_least: float, at_most: float
) -> None:
    pauses: list[float] = []
    now = 0.0

    async def act() -> None:
        nonlocal now
        if len(pauses) == 1:
            now += 0.01  # the call takes long

    async def sleep(seconds: float, *_: Any) -> None:
        pauses.append(seconds)
        if len(pauses) == 3:
            raise Stop

    monkeypatch.setattr(asyncio, "sleep", sleep)
    monkeypatch.setattr(periodic, "time", SimpleNamespace(monotonic=lambda: now))
    with pytest.raises(Stop):
        await repeat(
            "task", act, pause_seconds=0.5, times_its_duration=100, longest_pause_seconds=longest
        )

    first, after_long, after_short = pauses
    assert first <= 0.1
    assert at_least <= after_long <= at_most
    assert after_short == 0.5


async def test_a_task_that_is_cancelled_ends() -> None:
    running = asyncio.create_task(repeat("task", lambda: asyncio.sleep(0), pause_seconds=0))

    running.cancel()

    with pytest.raises(asyncio.CancelledError):
        await running
