"""Transactions out of the mirror of postings: one signed read at a time.

| figure | ours | beside |
|---|---|---|
| `mirror_page` | the last page of 1,000,000 postings | the first page of them |
| `mirror_read` | the first page, with nothing new at the bank | the first page of 101, without the mirror |
| `mirror_news` | the first page, with 100 new postings at the bank | with nothing new |
"""

from __future__ import annotations

import statistics
import time
from dataclasses import dataclass

import aiohttp

from tests.benchmarks.bench import Bench
from tests.benchmarks.figures import Figure, difference, ratio
from tests.benchmarks.partner import Partner, onboarded_partner
from tests.benchmarks.processor_time import ProcessorTime, parts_of
from tests.benchmarks.rounds import alternate
from tests.benchmarks.signed_requests import Target, signed
from tests.benchmarks.stored_postings import fill_postings
from tests.benchmarks.wrk import Load
from tests.support.api import Api, public_interface
from tests.support.bank import Bank
from tests.support.stack import Stack

PAGE_GOAL, PAGE_FLOOR = 0.9, 0.67
READ_GOAL, READ_FLOOR = 0.6, 0.49
NEWS_GOAL_MILLISECONDS, NEWS_FLOOR_MILLISECONDS = 20.0, 51.0
POSTINGS = 1_000_000
AT_THE_BANK = 100
"""Those of them that the bank has, too, and those that are new."""
LIMIT = 100
LAST_PAGE = POSTINGS // LIMIT
FILL_SECONDS = 60.0
FIRST_RATE = 500.0


async def run(bench: Bench) -> list[Figure]:
    async with (
        bench.stack(BANKSIDE_LEDGER_READ_MIRROR="true") as mirrored,
        bench.stack() as direct,
        aiohttp.ClientSession(auto_decompress=False) as session,
    ):
        account = await _Account.of(mirrored, session)
        beside = await _Account.of(direct, session)
        await account.read()
        # The deposit of a partner that is onboarded is one more.
        older = POSTINGS - AT_THE_BANK - 1
        url = mirrored.environment.database_urls["ledger_read_owner"]
        oldest = await fill_postings(url, account.partner.account_id, older)
        last = account.load(bench, LAST_PAGE, f'"transaction_id":"{oldest}"')
        first, at_the_bank = account.load(bench, 1), beside.load(bench, 1)
        pages = await alternate(bench.plan, "/s", last.rate, first.rate)
        reads = await alternate(bench.plan, "/s", first.rate, at_the_bank.rate)
        news = await alternate(bench.plan, "ms", account.with_news, account.without_news)
    return [
        ratio("mirror_page", *pages, goal=PAGE_GOAL, floor=PAGE_FLOOR, note=last.told),
        ratio("mirror_read", *reads, goal=READ_GOAL, floor=READ_FLOOR, note=at_the_bank.told),
        difference(
            "mirror_news", *news, goal=NEWS_GOAL_MILLISECONDS, floor=NEWS_FLOOR_MILLISECONDS
        ),
    ]


@dataclass(frozen=True)
class _Account:
    stack: Stack
    partner: Partner
    api: Api
    bank: Bank

    @staticmethod
    async def of(stack: Stack, session: aiohttp.ClientSession) -> _Account:
        partner = await onboarded_partner(stack)
        api = Api(session, stack.base_url, public_interface(), partner.customer_key)
        account = _Account(stack, partner, api, Bank(session, stack.sandbox_url))
        await account.post()
        return account

    def path(self, page: int) -> str:
        return (
            f"/customer/accounts/transactions/{self.partner.account_id}?page={page}&limit={LIMIT}"
        )

    def load(self, bench: Bench, page: int, expected: str | None = None) -> Load:
        return Load(
            self.stack.base_url,
            signed(Target(self.stack.base_url, "GET", self.path(page)), self.partner.customer_key),
            expected or f'"account_number":"{self.partner.account_number}"',
            1,
            ProcessorTime(parts_of(self.stack, bench.servers)),
            first_rate=FIRST_RATE,
        )

    async def post(self) -> None:
        """A hundred postings that the bank did not have yet."""
        await self.bank.simulate(
            "history",
            FILL_SECONDS,
            account_id=self.partner.account_id,
            transactions=AT_THE_BANK,
            days=1,
        )

    async def read(self) -> float:
        """The first page; how many milliseconds it took."""
        began = time.perf_counter()
        answer = await self.api.get(self.path(1))
        took = (time.perf_counter() - began) * 1000
        assert answer.status == 200, answer
        return took

    async def with_news(self, seconds: int) -> float:
        return await self._median(seconds, has_news=True)

    async def without_news(self, seconds: int) -> float:
        return await self._median(seconds, has_news=False)

    async def _median(self, seconds: int, *, has_news: bool) -> float:
        found: list[float] = []
        until = time.monotonic() + seconds
        while not found or time.monotonic() < until:
            if has_news:
                await self.post()
            found.append(await self.read())
        return statistics.median(found)
