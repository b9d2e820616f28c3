from __future__ import annotations

import asyncio
import random
from collections import Counter
from decimal import Decimal

import aiohttp
import asyncpg
import pytest

from tests.integration.provider_sandbox.bank import Bank
from tests.integration.provider_sandbox.test_crashes import bank_of
from tests.integration.provider_sandbox.wires import (
    act,
    assert_books_agree,
    new_id,
    open_sender,
    send,
    sent,
)
from tests.support.pace import pace
from tests.support.stack import Stack

WIRES = 200
AFFORDED = 120


async def test_no_more_wires_at_once_are_taken_than_there_are_funds_for(
    bank: Bank, sandbox: Stack
) -> None:
    sender = await open_sender(bank, f"{AFFORDED * 7}.00")
    seen: list[Decimal] = []
    all_sent = asyncio.Event()

    async def observe() -> None:
        while not all_sent.is_set():
            reply = await bank.get(f"/financial/accounts/{sender.account_id}/balance")
            seen.append(Decimal(reply.body["available"]))

    connector = aiohttp.TCPConnector(limit=0)
    async with aiohttp.ClientSession(connector=connector) as session, asyncio.TaskGroup() as group:
        crowd = bank_of(sandbox, session)
        group.create_task(observe())
        async with asyncio.TaskGroup() as senders:
            tasks = [senders.create_task(send(crowd, sender, "7.00")) for _ in range(WIRES)]
        all_sent.set()

    replies = [task.result() for task in tasks]
    assert Counter(reply.status for reply in replies) == {200: AFFORDED, 409: WIRES - AFFORDED}
    assert {r.code for r in replies if r.status == 409} == {"insufficient_funds"}
    assert len(await bank.truth("wires", account_id=sender.account_id)) == AFFORDED
    assert seen == sorted(seen, reverse=True)
    assert min(seen) >= 0
    await assert_books_agree(bank, sender, f"{AFFORDED * 7}.00")
    reply = await bank.get(f"/financial/accounts/{sender.account_id}/balance")
    assert Decimal(reply.body["available"]) == 0


@pytest.mark.parametrize("seed", range(2))
async def test_any_order_of_steps_at_once_keeps_the_books_in_balance(
    bank: Bank, books: asyncpg.Connection, seed: int
) -> None:
    draw = random.Random(seed)
    senders = [await open_sender(bank) for _ in range(3)]
    wires = [(sender, new_id()) for sender in senders for _ in range(12)]

    async def live(sender_index: int, key: str, steps: list[str]) -> None:
        sender = senders[sender_index]
        amount = f"{draw.randrange(1, 20)}.{draw.randrange(100):02}"
        if (await send(bank, sender, amount, key)).status == 200:
            await asyncio.gather(*(act(bank, key, step) for step in steps))

    async with asyncio.TaskGroup() as group:
        for sender, key in wires:
            steps = draw.choices(["complete", "reject", "return"], k=draw.randrange(6))
            group.create_task(live(senders.index(sender), key, steps))

    for sender in senders:
        await assert_books_agree(bank, sender, "100.00")
    assert await books.fetchval("SELECT sum(amount) FROM posting") == 0


async def test_accounts_are_sent_from_and_settled_at_once_without_a_deadlock(bank: Bank) -> None:
    senders = [await open_sender(bank, "1000.00") for _ in range(8)]

    async def run(number: int) -> None:
        for turn in range(4):
            sender = senders[(number * 3 + turn * 5) % len(senders)]
            wire = await sent(bank, sender, "1.00")
            assert (await act(bank, wire, "complete")).status == 200
            assert (await bank.deposit(sender.account_id, "1.00")).status == 200

    async with asyncio.TaskGroup() as group:
        for number in range(16):
            group.create_task(run(number))

    for sender in senders:
        reply = await bank.get(f"/financial/accounts/{sender.account_id}/balance")
        assert reply.body["available"] == reply.body["total"] == "1000.00"


async def test_a_reader_of_the_feed_beside_the_senders_misses_nothing(bank: Bank) -> None:
    sender = await open_sender(bank, "1000.00")
    before = 0
    while page := (await bank.get("/core/events", after=before, limit=500)).body["events"]:
        before = page[-1]["position"]
    read: list[tuple[int, str, str]] = []
    written: set[str] = set()

    async def write() -> None:
        for _ in range(4):
            wire = await sent(bank, sender, "1.00")
            await act(bank, wire, "complete")
            written.add(wire)

    async def poll() -> None:
        while len(read) < 2 * 20 * 4:
            after = read[-1][0] if read else before
            page = (await bank.get("/core/events", after=after, limit=7)).body["events"]
            read.extend((e["position"], e["type"], e["transaction_id"]) for e in page)

    async with asyncio.timeout(60 * pace()), asyncio.TaskGroup() as group:
        group.create_task(poll())
        for _ in range(20):
            group.create_task(write())

    assert [position for position, _, _ in read] == list(range(before + 1, before + 1 + len(read)))
    for wanted in ("wire.submitted", "wire.completed"):
        assert {wire for _, kind, wire in read if kind == wanted} == written
