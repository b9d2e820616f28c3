"""Signed balance reads beside the bare queue."""

from __future__ import annotations

from functools import partial

from tests.benchmarks.bare import echo
from tests.benchmarks.bench import Bench
from tests.benchmarks.figures import Figure, ratio
from tests.benchmarks.keys.balance import balance_load
from tests.benchmarks.partner import onboarded_partner
from tests.benchmarks.rounds import alternate

GOAL, FLOOR = 2.0, 0.67


async def run(bench: Bench) -> list[Figure]:
    async with bench.stack() as stack:
        load = balance_load(bench, stack, await onboarded_partner(stack))
        broker = stack.environment.amqp_url
        async with echo.responder(broker):
            ours, bare = await alternate(bench.plan, "/s", load.rate, partial(echo.rate, broker))
    return [ratio("read_path", ours, bare, goal=GOAL, floor=FLOOR, note=load.told)]
