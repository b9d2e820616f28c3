"""Businesses onboarded a second, beside what PostgreSQL commits by itself.

Each is a business with two persons and an external bank account: verified, recorded at core banking, an account opened,
the external account linked, every step durable before and after its call.
"""

from __future__ import annotations

import json
from dataclasses import replace
from functools import partial

from tests.benchmarks.bare import pgbench
from tests.benchmarks.bench import Bench
from tests.benchmarks.figures import Figure, ratio
from tests.benchmarks.partner import TENANT, new_key
from tests.benchmarks.processor_time import ProcessorTime, parts_of
from tests.benchmarks.rounds import alternate
from tests.benchmarks.signed_requests import Target, signed
from tests.benchmarks.wrk import Load
from tests.support.api import Key
from tests.support.people import application
from tests.support.stack import Stack

GOAL, FLOOR = 0.008, 0.006
IN_FLIGHT = 32
ROUND_SECONDS = 12
"""An onboarding takes seconds with so many in flight: a short round would end among the first of them."""
FIRST_RATE = 50.0


async def run(bench: Bench) -> list[Figure]:
    url = bench.servers.url(await bench.servers.database())
    await pgbench.prepare(url)
    async with bench.stack() as stack:
        key = await new_key(stack, "--family", "partner", "--tenant", TENANT)
        load = onboarding_load(bench, stack, key)
        plan = replace(
            bench.plan,
            seconds=max(bench.plan.seconds, ROUND_SECONDS),
            warm_up_seconds=ROUND_SECONDS,
        )
        ours, bare = await alternate(plan, "/s", load.rate, partial(pgbench.tps, url))
    return [ratio("onboarding_path", ours, bare, goal=GOAL, floor=FLOOR, note=load.told)]


def onboarding_load(bench: Bench, stack: Stack, key: Key) -> Load:
    target = Target(stack.base_url, "POST", "/partner/reseller/customers")

    def make() -> bytes:
        return signed(target, key, json.dumps(application()).encode())()

    return Load(
        stack.base_url,
        make,
        '"status":"approved"',
        IN_FLIGHT,
        ProcessorTime(parts_of(stack, bench.servers)),
        first_rate=FIRST_RATE,
    )
