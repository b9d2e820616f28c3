"""How many wires are in which state."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import asyncpg
import pytest

from libs.contracts.wires import WireState
from libs.persistence.async_engine import AsyncConnection
from services.payments.metrics import OPEN, PAST, WIRES, count_for_ever
from services.payments.repository import lists
from tests.support.waiting import eventually
from tests.unit.payments.bench import Bench

NOT_COUNTED = -1.0


def count_of(state: WireState) -> float:
    (metric,) = WIRES.collect()
    return next(s.value for s in metric.samples if s.labels["state"] == state.value)


async def counted(bench: Bench, states: Sequence[WireState], expected: Sequence[WireState]) -> None:
    """Count anew, until the expected ones of the states are counted."""
    for state in WireState:
        WIRES.labels(state.value).set(NOT_COUNTED)

    async def are_counted() -> bool:
        return NOT_COUNTED not in map(count_of, expected)

    counting = asyncio.create_task(count_for_ever(bench.database, states))
    try:
        await eventually("wires are counted", are_counted)
    finally:
        counting.cancel()
        await asyncio.wait([counting])


def test_every_state_is_counted() -> None:
    assert sorted([*OPEN, *PAST]) == sorted(WireState)


async def test_wires_are_counted_by_state(bench: Bench) -> None:
    await counted(bench, OPEN, OPEN)
    before = [count_of(state) for state in OPEN]
    await bench.wire()
    await bench.wire(WireState.SUBMITTED)
    await bench.wire(WireState.SUBMITTED)

    await counted(bench, OPEN, OPEN)

    assert [count_of(state) - old for state, old in zip(OPEN, before, strict=True)] == [0, 1, 2]


async def test_a_count_that_takes_too_long_leaves_the_others(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def count_in_state(_: AsyncConnection, state: WireState) -> int:
        if state is WireState.RETURNED:
            raise asyncpg.QueryCanceledError
        return 7

    monkeypatch.setattr(lists, "count_in_state", count_in_state)
    others = [state for state in PAST if state is not WireState.RETURNED]

    await counted(bench, PAST, others)

    assert [count_of(state) for state in others] == [7.0] * 3
    assert count_of(WireState.RETURNED) == NOT_COUNTED
