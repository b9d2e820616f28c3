"""Resident memory of each service: idle, and after reads and wires by the ten thousand."""

from __future__ import annotations

import asyncio

from tests.benchmarks.bench import Bench
from tests.benchmarks.figures import Figure, Series, limited
from tests.benchmarks.keys.balance import balance_load
from tests.benchmarks.keys.write_path import wire_load
from tests.benchmarks.partner import onboarded_partner
from tests.support.memory import resident_mebibytes
from tests.support.stack import Stack

GOAL_MIB, FLOOR_MIB = 90.0, 100.0
GROWTH_PERCENT = 20.0
SETTLE_SECONDS = 3.0


async def run(bench: Bench) -> list[Figure]:
    async with bench.stack() as stack:
        partner = await onboarded_partner(stack)
        await asyncio.sleep(SETTLE_SECONDS)
        idle = resident(stack)
        reads = balance_load(bench, stack, partner)
        wires = wire_load(bench, stack, partner)
        for _ in range(bench.plan.rounds):
            await reads.rate(bench.plan.seconds)
            await wires.rate(bench.plan.seconds)
        await asyncio.sleep(SETTLE_SECONDS)
        loaded = resident(stack)
    note = f"after {reads.answered:,} reads and {wires.answered:,} wires"
    return [figure for name in idle for figure in _figures(name, idle[name], loaded[name], note)]


def _figures(name: str, idle: float, loaded: float, note: str) -> list[Figure]:
    growth = (loaded / idle - 1) * 100
    told = f"{idle:.0f} MiB idle; {note}"
    return [
        limited(
            f"footprint {name}", Series((loaded,), "MiB"), goal=GOAL_MIB, floor=FLOOR_MIB, note=told
        ),
        limited(
            f"footprint {name} growth",
            Series((growth,), "%"),
            goal=GROWTH_PERCENT,
            floor=GROWTH_PERCENT,
        ),
    ]


def resident(stack: Stack) -> dict[str, float]:
    """MiB, by service."""
    return {name: resident_mebibytes(process.pid) for name, process in stack.services.items()}
