"""The last page of 100,000 transactions, beside the first page of 100: one signed read at a time."""

from __future__ import annotations

import aiohttp

from tests.benchmarks.bench import Bench
from tests.benchmarks.figures import Figure, ratio
from tests.benchmarks.partner import Partner, onboarded_partner
from tests.benchmarks.processor_time import ProcessorTime, parts_of
from tests.benchmarks.rounds import alternate
from tests.benchmarks.signed_requests import Target, signed
from tests.benchmarks.wrk import Load
from tests.support.bank import Bank
from tests.support.stack import Stack

GOAL, FLOOR = 0.5, 0.5
LONG, SHORT = 100_000, 100
LIMIT = 100
FILL_SECONDS = 60.0
FIRST_RATE = 1000.0


async def run(bench: Bench) -> list[Figure]:
    async with bench.stack() as stack:
        deep = await _page_of(bench, stack, transactions=LONG, page=LONG // LIMIT)
        first = await _page_of(bench, stack, transactions=SHORT, page=1)
        ours, beside = await alternate(bench.plan, "/s", deep.rate, first.rate)
    return [ratio("deep_page", ours, beside, goal=GOAL, floor=FLOOR, note=deep.told)]


async def _page_of(bench: Bench, stack: Stack, *, transactions: int, page: int) -> Load:
    partner: Partner = await onboarded_partner(stack)
    async with aiohttp.ClientSession() as session:
        await Bank(session, stack.sandbox_url).simulate(
            "history",
            FILL_SECONDS,
            account_id=partner.account_id,
            transactions=transactions,
            days=365,
        )
    path = f"/customer/accounts/transactions/{partner.account_id}?page={page}&limit={LIMIT}"
    return Load(
        stack.base_url,
        signed(Target(stack.base_url, "GET", path), partner.customer_key),
        f'"account_number":"{partner.account_number}"',
        1,
        ProcessorTime(parts_of(stack, bench.servers)),
        first_rate=FIRST_RATE,
    )
