"""Webhook deliveries from stored events, recorded durably, beside a loop that signs and posts and stores nothing."""

from __future__ import annotations

from tests.benchmarks.bare.signed_posts import SignedPosts
from tests.benchmarks.bench import Bench
from tests.benchmarks.dispatching import dispatching
from tests.benchmarks.example_event import BODY
from tests.benchmarks.figures import Figure, ratio
from tests.benchmarks.keys.due_deliveries import DueDeliveries
from tests.benchmarks.rounds import alternate

GOAL, FLOOR = 0.5, 0.33


async def run(bench: Bench) -> list[Figure]:
    async with dispatching(bench) as where:
        deliveries, bare = DueDeliveries(where), SignedPosts(where.receiver, BODY)
        ours, beside = await alternate(bench.plan, "/s", deliveries.rate, bare.rate)
    note = f"µs of processor per delivery: {deliveries.told}; bare loop {bare.told}"
    return [ratio("deliveries", ours, beside, goal=GOAL, floor=FLOOR, note=note)]
