"""More than a hundred wires at once over one account: what there are funds for, and not one more."""

from __future__ import annotations

import asyncio
import contextlib
from collections import Counter
from collections.abc import AsyncIterator
from decimal import Decimal

from tests.e2e.wires.hands import Sender, new_sender
from tests.support.live import Live
from tests.support.people import new_key

CROWD, FUNDED = 160, 96
LOOK_SECONDS = 0.15


@contextlib.asynccontextmanager
async def watched(sender: Sender) -> AsyncIterator[list[dict[str, Decimal]]]:
    """The balances that the account had before and meanwhile."""
    seen = [await sender.account.balance()]
    over = asyncio.Event()

    async def look() -> None:
        while not over.is_set():
            seen.append(await sender.account.balance())
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(LOOK_SECONDS):
                    await over.wait()

    async with asyncio.TaskGroup() as group:
        group.create_task(look())
        yield seen
        over.set()


async def test_of_a_crowd_of_wires_those_are_sent_for_which_there_are_funds(
    live: Live,
) -> None:
    sender = await new_sender(live, f"{10 * FUNDED + 7}.89")

    async with watched(sender) as seen:
        told = await sender.sent_at_once(new_key() for _ in range(CROWD))
        finals = (await sender.finals(told)).values()
        states = await sender.completed_at_bank(FUNDED)

    assert Counter(answer.status for answer in finals) == {200: FUNDED, 409: CROWD - FUNDED}
    # A bank that refuses without a code is asked for its reason, which in a crowd may not be known in time.
    unknown = set() if live.bank.gives_reasons else {"provider_refused"}
    codes = {answer.code for answer in finals if answer.status == 409}
    assert codes - unknown == {"insufficient_funds"}
    accepted = {answer.data["transaction_id"] for answer in finals if answer.status == 200}
    assert states.keys() == accepted
    debits = [row for row in await sender.posted() if row["type"] == "wire"]
    assert Counter(row["transaction_id"] for row in debits) == dict.fromkeys(accepted, 1)
    assert {row["amount"] for row in debits} == {"-10.00"}
    for moment in seen:
        assert moment["available"] >= 0
        assert moment["held"] >= 0
        assert moment["available"] + moment["held"] == moment["total"]
    assert len({moment["available"] for moment in seen}) > 1, "it was looked at amid the crowd"
    assert set((await sender.account.balance()).values()) == {Decimal("7.89"), Decimal("0.00")}
    await sender.has_told(accepted, "created", "submitted", "completed")
    assert await sender.total(state="completed") == FUNDED
    assert await sender.total(state="rejected") == CROWD - FUNDED == await sender.total() - FUNDED
