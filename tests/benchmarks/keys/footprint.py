"""Resident memory of each service, idle and after reads and wires: at the sandbox, and at the fake of Increase."""

from __future__ import annotations

import asyncio

from deploy.local import banks
from tests.benchmarks.bench import Bench
from tests.benchmarks.figures import Figure, Series, limited
from tests.benchmarks.keys.balance import CONNECTIONS, balance_load
from tests.benchmarks.keys.write_path import IN_FLIGHT, wire_load
from tests.benchmarks.partner import onboarded_partner
from tests.support.memory import resident_mebibytes
from tests.support.stack import Stack

GOAL_MIB, FLOOR_MIB = 90.0, 100.0
INCREASE_MIB = 140.0
"""The SDK of Increase has some thousand models."""
INCREASE_CONNECTIONS = 8
"""As many as its fake answers in time."""
GROWTH_PERCENT = 20.0
SETTLE_SECONDS = 3.0


async def run(bench: Bench) -> list[Figure]:
    idle, loaded, note = await _measured(bench, banks.SANDBOX, CONNECTIONS, IN_FLIGHT)
    return [
        figure
        for name in idle
        for figure in (
            limited(
                f"footprint {name}",
                Series((loaded[name],), "MiB"),
                goal=GOAL_MIB,
                floor=FLOOR_MIB,
                note=f"{idle[name]:.0f} MiB idle; {note}",
            ),
            limited(
                f"footprint {name} growth",
                Series(((loaded[name] / idle[name] - 1) * 100,), "%"),
                goal=GROWTH_PERCENT,
                floor=GROWTH_PERCENT,
            ),
        )
    ]


async def run_at_increase(bench: Bench) -> list[Figure]:
    """All services, also those that do not speak to the bank."""
    idle, loaded, note = await _measured(
        bench, banks.INCREASE_FAKE, INCREASE_CONNECTIONS, INCREASE_CONNECTIONS
    )
    return [
        limited(
            f"footprint_increase {name}",
            Series((loaded[name],), "MiB"),
            goal=INCREASE_MIB,
            floor=INCREASE_MIB,
            note=f"{idle[name]:.0f} MiB idle; {note}",
        )
        for name in idle
    ]


async def _measured(
    bench: Bench, bank: str, reading: int, wiring: int
) -> tuple[dict[str, float], dict[str, float], str]:
    """MiB by service, idle and loaded by so many connections, and what the load was."""
    async with bench.stack(bank=bank) as stack:
        partner = await onboarded_partner(stack)
        await asyncio.sleep(SETTLE_SECONDS)
        idle = resident(stack)
        reads = balance_load(bench, stack, partner, reading)
        wires = wire_load(bench, stack, partner, wiring)
        for _ in range(bench.plan.rounds):
            await reads.rate(bench.plan.seconds)
            await wires.rate(bench.plan.seconds)
        await asyncio.sleep(SETTLE_SECONDS)
        loaded = resident(stack)
    return idle, loaded, f"after {reads.answered:,} reads and {wires.answered:,} wires"


def resident(stack: Stack) -> dict[str, float]:
    """MiB, by service."""
    return {
        name: resident_mebibytes(process.pid)
        for name, process in stack.services.items()
        if name != banks.PART
    }
