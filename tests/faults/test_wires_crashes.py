"""`kill -9` of the only replica of payments, in each phase, before a bank that remembers: the counts are the same.

Every point is in tests/unit/payments/test_crashes.py, each phase beside a second replica in
tests/integration/payments/test_crashes.py.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from decimal import Decimal

from tests.e2e.wires.hands import new_sender
from tests.faults.test_crashes import TAKEN_OVER_SECONDS, killed_at
from tests.support.api import Answer
from tests.support.live import Live
from tests.support.people import new_key
from tests.support.waits import leases_end

FAILED_ONCE = "payments.resumed"
POINTS = [
    "feed.core.before_commit",
    "payments.accepted",
    "payments.intended",
    "payments.called",
    FAILED_ONCE,
    "payments.concluding",
]
WIRES_PER_POINT = 4
FUNDED_SHARE = Decimal("0.75")


async def test_wires_survive_a_kill_in_each_phase(live: Live) -> None:
    crowd = WIRES_PER_POINT * len(POINTS)
    funded = int(crowd * FUNDED_SHARE)
    sender = await new_sender(live, str(10 * funded))
    callers: list[asyncio.Task[dict[str, Answer]]] = []

    for point in POINTS:
        if point == FAILED_ONCE:
            await live.bank.fault("core", "send_wire", "error", times=1)
        sending = sender.sent_at_once(new_key() for _ in range(WIRES_PER_POINT))
        callers.append(await killed_at(live, point, sending, service="payments"))
    await leases_end(live.stack.environment, "payments")
    await live.stack.restart("payments")
    told = {key: answer for caller in callers for key, answer in (await caller).items()}
    finals = await sender.finals(told, TAKEN_OVER_SECONDS)
    states = await sender.completed_at_bank(funded)

    assert Counter(answer.code for answer in finals.values()) == {
        "200": funded,
        "insufficient_funds": crowd - funded,
    }
    accepted = {a.data["transaction_id"] for a in finals.values() if a.status == 200}
    assert states.keys() == accepted
    debits = Counter(
        row["transaction_id"] for row in await sender.posted() if row["type"] == "wire"
    )
    assert debits == dict.fromkeys(accepted, 1)
    assert set((await sender.account.balance()).values()) == {Decimal(0)}
    for key, answer in told.items():
        if answer.status < 500:
            assert answer.raw == finals[key].raw
    assert await sender.total(state="rejected") == crowd - funded == await sender.total() - funded
    await sender.has_told(accepted, "created", "submitted", "completed")
