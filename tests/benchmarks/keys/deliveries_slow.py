"""What an endpoint that hangs takes from the deliveries to all others."""

from __future__ import annotations

from tests.benchmarks.bench import Bench
from tests.benchmarks.dispatching import dispatching
from tests.benchmarks.figures import Figure, ratio
from tests.benchmarks.keys.due_deliveries import DueDeliveries
from tests.benchmarks.rounds import alternate

GOAL, FLOOR = 0.9, 0.7
HUNG_SHARE = 0.05


async def run(bench: Bench) -> list[Figure]:
    async with dispatching(bench) as where:
        others, undisturbed = DueDeliveries(where, HUNG_SHARE), DueDeliveries(where)
        ours, beside = await alternate(bench.plan, "/s", others.rate, undisturbed.rate)
    note = f"µs of processor per delivery: {others.told}; without: {undisturbed.told}"
    return [ratio("deliveries_slow", ours, beside, goal=GOAL, floor=FLOOR, note=note)]
