"""What a signed balance read takes longer than the provider's own answer takes, one at a time."""

from __future__ import annotations

from tests.benchmarks.bench import Bench
from tests.benchmarks.figures import Figure, difference
from tests.benchmarks.keys.balance import balance_load, expected_balance
from tests.benchmarks.partner import onboarded_partner
from tests.benchmarks.rounds import alternate
from tests.benchmarks.signed_requests import Target, plain
from tests.benchmarks.wrk import Load

GOAL_MILLISECONDS, FLOOR_MILLISECONDS = 3.0, 5.4


async def run(bench: Bench) -> list[Figure]:
    async with bench.stack() as stack:
        partner = await onboarded_partner(stack)
        load = balance_load(bench, stack, partner, connections=1)
        target = Target(
            stack.sandbox_url, "GET", f"/financial/accounts/{partner.account_id}/balance"
        )
        token = stack.environment.secrets.provider_tokens["ledger_read"]["financial"]
        provider = Load(
            stack.sandbox_url,
            plain(target, Authorization=f"Bearer {token}"),
            expected_balance(partner),
            connections=1,
        )
        ours, beside = await alternate(
            bench.plan, "ms", load.median_milliseconds, provider.median_milliseconds
        )
    return [
        difference(
            "read_latency",
            ours,
            beside,
            goal=GOAL_MILLISECONDS,
            floor=FLOOR_MILLISECONDS,
            note=load.told,
        )
    ]
