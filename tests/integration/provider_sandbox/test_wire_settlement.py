from __future__ import annotations

import asyncio
import contextlib

import aiohttp

from tests.integration.provider_sandbox.bank import Bank, Reply
from tests.integration.provider_sandbox.test_crashes import bank_of
from tests.integration.provider_sandbox.wires import (
    Sender,
    assert_books_agree,
    new_id,
    open_sender,
    send,
    sent,
)
from tests.support.pace import pace
from tests.support.stack import Stack
from tests.support.waiting import eventually

NEVER = {"BANKSIDE_SANDBOX_WIRE_SECONDS": "3600"}
SOON = {"BANKSIDE_SANDBOX_WIRE_SECONDS": "0.2"}
CLIENTS, TURNS, AFFORDED = 20, 6, 80


async def states(bank: Bank, sender: Sender) -> list[str]:
    return [wire["state"] for wire in await bank.truth("wires", account_id=sender.account_id)]


async def until(bank: Bank, sender: Sender, expected: list[str]) -> None:
    async def reached() -> bool:
        return await states(bank, sender) == expected

    await eventually(f"wires are {expected}", reached)


async def send_until_known(bank: Bank, sender: Sender, amount: str, key: str) -> Reply:
    """What an adapter does: the same key again until there is an answer that is one."""
    async with asyncio.timeout(60 * pace()):
        while True:
            with contextlib.suppress(aiohttp.ClientError):
                reply = await send(bank, sender, amount, key)
                if reply.status < 500:
                    return reply
            await asyncio.sleep(0.02)


async def test_wires_are_settled_by_themselves_in_their_time_across_a_restart(
    own_sandbox: Stack,
) -> None:
    process = own_sandbox.services["provider_sandbox"]
    async with aiohttp.ClientSession() as session:
        bank = bank_of(own_sandbox, session)
        await process.start(BANKSIDE_SANDBOX_WIRE_SECONDS=str(pace()))
        try:
            sender = await open_sender(bank)
            for amount in ("1.00", "2.66", "0.66", "3.67"):
                await sent(bank, sender, amount)
            assert await states(bank, sender) == ["submitted"] * 4
            await process.kill()
            await process.start(**NEVER)
            await sent(bank, sender, "1.00")

            await until(
                bank, sender, ["completed", "rejected", "rejected", "completed", "submitted"]
            )

            await assert_books_agree(bank, sender, "100.00")
            last = (await bank.get("/core/events", limit=500)).body["events"][-1]
            assert (last["reason"] is None) == (last["type"] != "wire.rejected")
        finally:
            await own_sandbox.stop()


async def test_a_crash_leaves_a_wire_with_its_hold_key_and_news_or_nothing(
    own_sandbox: Stack,
) -> None:
    process = own_sandbox.services["provider_sandbox"]
    async with aiohttp.ClientSession() as session:
        bank = bank_of(own_sandbox, session)
        await process.start(**NEVER)
        try:
            sender, keys = await open_sender(bank), [new_id() for _ in range(3)]
            await process.stop()
            await process.start(**NEVER, BANKSIDE_CRASH_AT="sandbox.uncommitted")

            async def all_break() -> bool:
                sends = (send(bank, sender, "40.00", key) for key in keys)
                answers = await asyncio.gather(*sends, return_exceptions=True)
                await process.ended()
                return all(isinstance(answer, aiohttp.ClientError) for answer in answers)

            async def kept_and_known() -> tuple[int, int]:
                known = [(await bank.wire_operation(key)).status for key in keys]
                await assert_books_agree(bank, sender, "100.00")
                return len(await states(bank, sender)), known.count(200)

            assert await all_break()
            await process.start(**NEVER, BANKSIDE_CRASH_AT="sandbox.committed")
            uncommitted = await kept_and_known()
            assert await all_break()
            await process.start(**NEVER)
            kept, known = await kept_and_known()
            replies = [await send(bank, sender, "40.00", key) for key in keys]

            assert uncommitted[0] == 0
            assert known >= kept > 0
            assert sorted(reply.status for reply in replies) == [200, 200, 409]
            assert sum(reply.replayed for reply in replies) == known
            await assert_books_agree(bank, sender, "100.00")
        finally:
            await own_sandbox.stop()


async def test_crashes_while_a_wire_is_settled_settle_it_once(own_sandbox: Stack) -> None:
    process = own_sandbox.services["provider_sandbox"]
    async with aiohttp.ClientSession() as session:
        bank = bank_of(own_sandbox, session)
        await process.start(**SOON, BANKSIDE_CRASH_AT="sandbox.wires_unsettled")
        try:
            sender = await open_sender(bank)
            # It is settled in no time, so that the process may end before it has answered.
            with contextlib.suppress(aiohttp.ClientError):
                await sent(bank, sender, "40.00")
            await process.ended()
            process.spawn(**SOON, BANKSIDE_CRASH_AT="sandbox.wires_settled")
            await process.ended()
            await process.start(**SOON)

            await until(bank, sender, ["completed"])

            await assert_books_agree(bank, sender, "100.00")
        finally:
            await own_sandbox.stop()


async def test_killed_under_load_it_keeps_every_wire_it_told_of_and_doubles_none(
    own_sandbox: Stack,
) -> None:
    process = own_sandbox.services["provider_sandbox"]
    replies: dict[str, Reply] = {}
    async with aiohttp.ClientSession() as session:
        bank = bank_of(own_sandbox, session)
        await process.start(**SOON)
        sender = await open_sender(bank, f"{AFFORDED}.00")

        async def client() -> None:
            for _ in range(TURNS):
                key = new_id()
                replies[key] = await send_until_known(bank, sender, "1.00", key)

        try:
            async with asyncio.TaskGroup() as group:
                for _ in range(CLIENTS):
                    group.create_task(client())
                for share in (0.25, 0.5):
                    while len(replies) < share * CLIENTS * TURNS:
                        await asyncio.sleep(0.005)
                    await process.kill()
                    await process.start(**SOON)

            await until(bank, sender, ["completed"] * AFFORDED)
            wires = await bank.truth("wires", account_id=sender.account_id)
            told = {key for key, reply in replies.items() if reply.status == 200}
            assert {wire["transaction_id"] for wire in wires} == told
            assert {r.code for r in replies.values() if r.status != 200} == {"insufficient_funds"}
            await assert_books_agree(bank, sender, f"{AFFORDED}.00")
        finally:
            await own_sandbox.stop()


async def test_a_key_is_known_for_as_long_as_it_is_set(own_sandbox: Stack) -> None:
    process = own_sandbox.services["provider_sandbox"]
    async with aiohttp.ClientSession() as session:
        bank = bank_of(own_sandbox, session)
        await process.start(**NEVER, BANKSIDE_SANDBOX_KEY_HOURS=str(pace() / 3600))
        try:
            sender, key = await open_sender(bank), new_id()
            await sent(bank, sender, "40.00", key)
            at_once = await bank.wire_operation(key)

            async def forgotten() -> bool:
                return (await bank.wire_operation(key)).status == 404

            await eventually("the key is forgotten", forgotten)
            again = await send(bank, sender, "40.00", key)

            assert at_once.status == 200
            assert (again.status, again.code) == (409, "duplicate_transaction")
            assert await states(bank, sender) == ["submitted"]
        finally:
            await own_sandbox.stop()
