"""The read path with twice the processes, on the same cores: more of them must cost nothing."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator

from deploy.local.services import SERVICES
from tests.benchmarks.bench import Bench
from tests.benchmarks.figures import Figure, ratio
from tests.benchmarks.keys.balance import balance_load
from tests.benchmarks.partner import onboarded_partner
from tests.benchmarks.rounds import alternate
from tests.support.launching import launched
from tests.support.ports import free_ports
from tests.support.stack import ServiceProcess, Stack

GOAL, FLOOR = 1.0, 0.56
PROCESSES = 2


async def run(bench: Bench) -> list[Figure]:
    async with bench.stack() as single, _doubled(bench) as double:
        one = balance_load(bench, single, await onboarded_partner(single))
        two = balance_load(bench, double, await onboarded_partner(double))
        ours, beside = await alternate(bench.plan, "/s", two.rate, one.rate)
    return [ratio("scale_out", ours, beside, goal=GOAL, floor=FLOOR, note=two.told)]


@contextlib.asynccontextmanager
async def _doubled(bench: Bench) -> AsyncIterator[Stack]:
    """A stack with two processes of the gateway and two of ledger_read."""
    [ledger_read] = [service for service in SERVICES if service.name == "ledger_read"]
    async with bench.stack(BANKSIDE_GATEWAY_PROCESSES=str(PROCESSES)) as stack:
        first = stack.services[ledger_read.name]
        port = f"BANKSIDE_{ledger_read.prefix}_ADMIN_PORT"
        second = ServiceProcess(
            first.module,
            first.settings | {port: str(free_ports(1)[0])},
            stack.folder / f"{ledger_read.name}-2.log",
            launched,
        )
        stack.services[f"{ledger_read.name}-2"] = second
        await second.start()
        yield stack
