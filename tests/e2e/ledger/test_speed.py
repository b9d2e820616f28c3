"""A long history is as quick to read as a short one, at its beginning and at its end."""

from __future__ import annotations

import statistics
import time

from tests.e2e.ledger.hands import Account, new_account
from tests.support.live import Live

LONG, SHORT = 100_000, 100
LIMIT = 100
ROUNDS = 30
FILL_SECONDS = 60.0


async def test_page_one_and_page_one_thousand_take_at_most_twice_as_long(live: Live) -> None:
    long, short = await new_account(live), await new_account(live)
    for account, count in ((long, LONG), (short, SHORT)):
        await live.bank.simulate(
            "history", FILL_SECONDS, account_id=account.account_id, transactions=count, days=365
        )
    last = await long.read("transactions", page=1000, limit=LIMIT)
    assert (len(last.data), last.body["pagination"]["total"]) == (LIMIT, LONG)
    assert (await long.read("transactions", page=1001, limit=LIMIT)).data == []

    async def medians() -> tuple[float, float, float]:
        """Taken in turns, so that whatever else this machine does slows all of them down."""
        taken: list[list[float]] = [[], [], []]
        for _ in range(ROUNDS):
            for seconds, (account, page) in zip(
                taken, ((short, 1), (long, 1), (long, 1000)), strict=True
            ):
                seconds.append(await _seconds(account, page))
        return tuple(statistics.median(seconds) for seconds in taken)  # type: ignore[return-value]

    ratios = []
    for _ in range(3):
        baseline, first, deep = await medians()
        ratios.append(max(first, deep) / baseline)
        if ratios[-1] <= 2:
            break

    assert min(ratios) <= 2, ratios


async def _seconds(account: Account, page: int) -> float:
    started = time.perf_counter()
    answer = await account.read("transactions", page=page, limit=LIMIT)
    taken = time.perf_counter() - started
    assert len(answer.data) == LIMIT
    return taken
