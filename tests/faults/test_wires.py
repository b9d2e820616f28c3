"""Wires through a bank that fails in every way at once, counted at the bank; and past an owner who is slow to tell."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from decimal import Decimal

import asyncpg

from tests.e2e.wires.hands import new_sender
from tests.faults.test_provider_faults import PASSING, driven
from tests.support.live import Live
from tests.support.people import new_key
from tests.support.waiting import eventually

CROWD, FUNDED = 40, 32
DRAINED_SECONDS = 60.0


async def test_each_wire_of_a_crowd_exists_once_or_not_at_all_under_every_fault(live: Live) -> None:
    sender = await new_sender(live, str(10 * FUNDED))
    keys = [new_key() for _ in range(CROWD)]
    owned = await sender.final(new_key(), "9999999999.99")
    slow = live.beyond_timeout(1.5)
    for operation in ("send_wire", "get_operation"):
        for kind in PASSING:
            more = slow if kind == "latency" else {}
            await live.bank.fault("core", operation, kind, probability=0.25, **more)

    told = await sender.sent_at_once(keys)
    struck = {rule["kind"] for rule in await live.bank.faults() if rule["applied"]}
    await live.bank.heal()
    healed = time.monotonic()
    await driven(live, "payments")
    finals = await sender.finals(told, DRAINED_SECONDS)

    async def slow_ones_arrived() -> bool:
        return time.monotonic() - healed > slow["milliseconds"] / 1000

    await eventually("the latest of the slow requests has arrived", slow_ones_arrived)
    await live.bank.deposit(sender.account_id, Decimal(10))
    last = await sender.sent()
    states = await sender.completed_at_bank(FUNDED + 1)

    assert owned.code == "insufficient_funds", "from then on nobody but the bank is asked"
    codes = Counter(answer.code for answer in told.values())
    assert codes.keys() <= {"200", "insufficient_funds", "outcome_pending"}
    assert codes["200"], "the faults did not strike all"
    assert struck == set(PASSING)
    assert Counter(answer.code for answer in finals.values()) == {
        "200": FUNDED,
        "insufficient_funds": CROWD - FUNDED,
    }
    for key, answer in told.items():
        if answer.status != 504:
            assert answer.raw == finals[key].raw
        elif finals[key].status == 200:
            assert finals[key].data["transaction_id"] == answer.body["transaction_id"]
    accepted = {a.data["transaction_id"] for a in finals.values() if a.status == 200}
    assert states.keys() == accepted | {last}
    debits = Counter(
        row["transaction_id"] for row in await sender.posted() if row["type"] == "wire"
    )
    assert debits == dict.fromkeys(states, 1)
    assert set((await sender.account.balance()).values()) == {Decimal(0)}
    await sender.has_told(states.keys(), "created", "submitted", "completed")
    assert await sender.total(state="completed") == FUNDED + 1
    assert await sender.total(state="rejected") == CROWD - FUNDED + 1
    assert await sender.total() == CROWD + 2


async def test_a_question_of_ownership_that_takes_a_moment_is_waited_for(live: Live) -> None:
    sender = await new_sender(live, "10.00")
    url = live.stack.environment.database_urls["onboarding"]
    onboarding, onlooker = await asyncpg.connect(url), await asyncpg.connect(url)
    try:
        async with onboarding.transaction():
            await onboarding.execute("LOCK TABLE accounts IN ACCESS EXCLUSIVE MODE")
            sending = asyncio.create_task(sender.send())

            async def has_waited() -> bool:
                """The question, for a while; or the answer is there already."""
                waiting = await onlooker.fetchval(
                    "SELECT true FROM pg_stat_activity WHERE wait_event_type = 'Lock'"
                    " AND usename = current_user AND query LIKE '%FROM accounts%account_id%'"
                    " AND clock_timestamp() - query_start > interval '0.3 s'"
                )
                return bool(waiting) or sending.done()

            await eventually("the question waits", has_waited)
        answer = await sending
    finally:
        await onboarding.close()
        await onlooker.close()

    assert (answer.status, answer.code) == (200, "200")
