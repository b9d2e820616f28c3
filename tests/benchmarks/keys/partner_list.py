"""`GET /partner/reseller/accounts` of a partner with 10,000 accounts, beside that of a partner with 100.

One list at a time. The list is answered out of onboarding's pages of owned accounts and the provider's of accounts,
so that its time is to grow with the accounts and no faster.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from deploy.local.services import SERVICES
from tests.benchmarks.bench import Bench
from tests.benchmarks.figures import Figure, ratio
from tests.benchmarks.partner import new_key
from tests.benchmarks.processor_time import ProcessorTime, parts_of
from tests.benchmarks.rounds import alternate
from tests.benchmarks.signed_requests import Target, signed
from tests.benchmarks.stored_accounts import fill_accounts
from tests.benchmarks.wrk import Load
from tests.support.stack import Stack

GOAL, FLOOR = 1.0, 1.0
"""The time for an account must not grow with the number of accounts."""
MANY, FEW = 10_000, 100
ASKED = {"gateway", "onboarding", "ledger_read", "provider_sandbox"}
FIRST_NUMBERS = {MANY: 700_000_000_000, FEW: 800_000_000_000}
ROUND_SECONDS = 8
"""The long list takes more than a second: a short round would end within the first one."""
FIRST_RATE = 200.0


async def run(bench: Bench) -> list[Figure]:
    asked = [service for service in SERVICES if service.name in ASKED]
    plan = replace(bench.plan, seconds=max(bench.plan.seconds, ROUND_SECONDS))
    plan = replace(plan, warm_up_seconds=max(plan.warm_up_seconds, ROUND_SECONDS))
    async with bench.stack(asked) as stack:
        many, few = await _list_of(bench, stack, MANY), await _list_of(bench, stack, FEW)
        ours, beside = await alternate(plan, "accounts/s", many.rate, few.rate)
    note = f"{MANY:,} accounts: {many.load.told}; {FEW}: {few.load.told}"
    return [ratio("partner_list", ours, beside, goal=GOAL, floor=FLOOR, note=note)]


@dataclass(frozen=True)
class _List:
    load: Load
    accounts: int

    async def rate(self, seconds: int) -> float:
        """Accounts listed in a second of waiting for the list."""
        return self.accounts / (await self.load.median_milliseconds(seconds) / 1000)


async def _list_of(bench: Bench, stack: Stack, accounts: int) -> _List:
    tenant = f"partner-of-{accounts}"
    oldest = await fill_accounts(
        stack.environment, tenant, accounts, first_number=FIRST_NUMBERS[accounts]
    )
    key = await new_key(stack, "--family", "partner", "--tenant", tenant)
    load = Load(
        stack.base_url,
        signed(Target(stack.base_url, "GET", "/partner/reseller/accounts"), key),
        f'"id":"{oldest}"',
        1,
        ProcessorTime(parts_of(stack, bench.servers)),
        first_rate=FIRST_RATE,
    )
    return _List(load, accounts)
