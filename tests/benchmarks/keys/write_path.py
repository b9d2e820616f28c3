"""Wires accepted, durable at every step, beside what PostgreSQL commits by itself."""

from __future__ import annotations

import json
from functools import partial

from tests.benchmarks.bare import pgbench
from tests.benchmarks.bench import Bench
from tests.benchmarks.figures import Figure, ratio
from tests.benchmarks.partner import Partner, onboarded_partner
from tests.benchmarks.processor_time import ProcessorTime, parts_of
from tests.benchmarks.rounds import alternate
from tests.benchmarks.signed_requests import Target, signed
from tests.benchmarks.wrk import Load
from tests.support.stack import Stack

GOAL, FLOOR = 0.10, 0.065
IN_FLIGHT = 64


async def run(bench: Bench) -> list[Figure]:
    url = bench.servers.url(await bench.servers.database())
    await pgbench.prepare(url)
    async with bench.stack() as stack:
        load = wire_load(bench, stack, await onboarded_partner(stack))
        ours, bare = await alternate(bench.plan, "/s", load.rate, partial(pgbench.tps, url))
    return [ratio("write_path", ours, bare, goal=GOAL, floor=FLOOR, note=load.told)]


def wire_load(bench: Bench, stack: Stack, partner: Partner, connections: int = IN_FLIGHT) -> Load:
    wire = {
        "sending_account_id": partner.account_id,
        "external_account_id": partner.external_account_id,
        "amount": 1.25,
        "purpose": "Nets and buoys",
    }
    target = Target(stack.base_url, "POST", "/customer/wire")
    make = signed(target, partner.customer_key, json.dumps(wire).encode())
    expected = f'"sending_account_id":"{partner.account_id}"'
    return Load(
        stack.base_url,
        make,
        expected,
        connections,
        ProcessorTime(parts_of(stack, bench.servers)),
    )
