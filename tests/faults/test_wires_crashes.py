"""`kill -9` of payments before a bank that remembers, with one and with two replicas: the counts are the same."""

from __future__ import annotations

import asyncio
import contextlib
from collections import Counter
from collections.abc import AsyncIterator
from decimal import Decimal

import pytest

from tests.e2e.wires.hands import new_sender
from tests.faults.test_crashes import TAKEN_OVER_SECONDS, killed_at
from tests.support.api import Answer
from tests.support.live import Live
from tests.support.people import new_key
from tests.support.ports import free_ports
from tests.support.stack import ServiceProcess

FEED = ["feed.core.before_commit", "feed.core.after_commit"]
COMMAND = ["payments.accepted", "payments.driving", "payments.concluding", "payments.concluded"]
SEND = [
    *("payments.intending", "payments.intended", "payments.called"),
    *("payments.recording", "payments.recorded"),
]
FAILED_ONCE = "payments.resumed"
POINTS = {
    1: [*FEED, *SEND, FAILED_ONCE, *COMMAND],
    2: [FEED[0], "payments.intended", "payments.called", "payments.concluding"],
}
"""By replicas. A second one follows the feed from the first death on, so that comes first."""
WIRES_PER_POINT = 6
FUNDED_SHARE = Decimal("0.75")


@contextlib.asynccontextmanager
async def replicas(live: Live, count: int) -> AsyncIterator[ServiceProcess | None]:
    """The second replica, where there is to be one; it is to be started."""
    first = live.stack.services["payments"]
    settings = {**first.settings, "BANKSIDE_PAYMENTS_ADMIN_PORT": str(free_ports(1)[0])}
    second = ServiceProcess(first.module, settings, live.stack.folder / "payments-2.log")
    try:
        yield second if count == 2 else None
    finally:
        await live.stack.restart("payments")
        if second.is_running:
            await second.stop()


@pytest.mark.parametrize("count", POINTS)
async def test_wires_survive_a_kill_at_each_point(live: Live, count: int) -> None:
    points = POINTS[count]
    crowd = WIRES_PER_POINT * len(points)
    funded = int(crowd * FUNDED_SHARE)
    sender = await new_sender(live, str(10 * funded))
    callers: list[asyncio.Task[dict[str, Answer]]] = []

    async with replicas(live, count) as second:
        for point in points:

            async def provoke(point: str = point) -> dict[str, Answer]:
                if second and not second.is_running:
                    await second.start()
                if point == FAILED_ONCE:
                    await live.bank.fault("core", "send_wire", "error", times=1)
                return await sender.sent_at_once(new_key() for _ in range(WIRES_PER_POINT))

            callers.append(await killed_at(live, point, provoke(), service="payments"))
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
