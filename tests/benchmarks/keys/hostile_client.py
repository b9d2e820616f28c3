"""What another caller notices of one who holds connections, headers and bodies and guesses signatures, for a minute.

Both come from one address. Every read of the other caller has to be answered 200, and promptly.
"""

from __future__ import annotations

import asyncio
import sys
import time
from pathlib import Path

import aiohttp
from yarl import URL

from tests.benchmarks.bench import Bench
from tests.benchmarks.figures import TIMES, Figure, Series, limited
from tests.benchmarks.keys.balance import balance_target
from tests.benchmarks.keys.footprint import resident
from tests.benchmarks.partner import Partner, onboarded_partner
from tests.support.api import signed_headers
from tests.support.stack import Stack

READS_A_SECOND = 20
BAD_SIGNATURES_A_READ = 4
ROUNDS = 20
"""Of the plan's seconds: a minute, with the usual three."""
END_SECONDS = 30.0
GOAL_TIMES = 2.0
FLOOR_TIMES = 2.0
GOAL_MIB = 50.0


async def run(bench: Bench) -> list[Figure]:
    seconds = bench.plan.seconds * ROUNDS
    async with bench.stack() as stack:
        partner = await onboarded_partner(stack)
        async with aiohttp.ClientSession() as session:
            await reads(session, stack, partner, bench.plan.warm_up_seconds)
            quiet = await reads(session, stack, partner, seconds)
            before = resident(stack)["gateway"]
            hostile = await started(stack, seconds + END_SECONDS)
            try:
                beside = await reads(session, stack, partner, seconds)
                grown = resident(stack)["gateway"] - before
            finally:
                hostile.kill()
                await hostile.wait()
    times = percentile(beside, 99) / percentile(quiet, 99)
    told = (
        f"p99 {1000 * percentile(quiet, 99):.1f} ms quiet, {1000 * percentile(beside, 99):.1f} ms"
        f" beside the hostile caller; median {1000 * percentile(quiet, 50):.1f} and"
        f" {1000 * percentile(beside, 50):.1f} ms; {len(beside)} reads, all 200"
    )
    return [
        limited(
            "hostile_client", Series((times,), TIMES), goal=GOAL_TIMES, floor=FLOOR_TIMES, note=told
        ),
        limited("hostile_client memory", Series((grown,), "MiB"), goal=GOAL_MIB, floor=GOAL_MIB),
    ]


async def started(stack: Stack, seconds: float) -> asyncio.subprocess.Process:
    url = URL(stack.base_url)
    rate = READS_A_SECOND * BAD_SIGNATURES_A_READ
    return await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "tests.benchmarks.hostile"),
        *(str(url.host), str(url.port), str(seconds), str(rate)),
        cwd=Path(__file__).parents[3],
    )


async def reads(
    session: aiohttp.ClientSession, stack: Stack, partner: Partner, seconds: float
) -> list[float]:
    """The time that each read took, which are sent at a steady pace whether or not those before are answered."""
    target = balance_target(stack.base_url, partner)
    taken: list[float] = []

    async def read() -> None:
        headers = signed_headers(partner.key, "GET", target.path)
        url = URL(target.base_url + target.path, encoded=True)
        began = time.perf_counter()
        async with session.get(url, headers=headers) as answer:
            body = await answer.read()
        taken.append(time.perf_counter() - began)
        if answer.status != 200:
            raise RuntimeError(f"{answer.status} {body[:200]!r}")

    async with asyncio.TaskGroup() as group:
        for _ in range(int(seconds * READS_A_SECOND)):
            group.create_task(read())
            await asyncio.sleep(1 / READS_A_SECOND)
    return taken


def percentile(values: list[float], percent: int) -> float:
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, len(ordered) * percent // 100)]
