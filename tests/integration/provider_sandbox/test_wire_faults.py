from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable

import aiohttp
import pytest

from tests.integration.provider_sandbox.bank import Bank, Reply
from tests.integration.provider_sandbox.wires import (
    Sender,
    assert_books_agree,
    new_id,
    open_sender,
    send,
    sent,
)
from tests.support.pace import pace
from tests.support.waiting import eventually


async def attempt(request: Callable[[], Awaitable[Reply]]) -> Reply | None:
    """The answer; None when the connection broke."""
    try:
        return await request()
    except aiohttp.ClientConnectionError:
        return None


@pytest.mark.parametrize(
    ("kind", "status", "wires"),
    [
        ("error", 500, 0),
        ("refuse", 422, 0),
        ("fail_after_success", 500, 1),
        ("accept_then_drop", None, 1),
        ("duplicate_reply", 200, 1),
    ],
)
async def test_a_fault_strikes_a_wire_before_or_after_its_effect(
    bank: Bank, kind: str, status: int | None, wires: int
) -> None:
    sender, key = await open_sender(bank), new_id()
    put = await bank.fault("core", kind, operation="send_wire", times=1)

    struck = await attempt(lambda: send(bank, sender, "40.00", key))
    counted = await bank.truth("wires", account_id=sender.account_id)
    known = await bank.wire_operation(key)
    retried = await send(bank, sender, "40.00", key)

    assert put.status == 200
    assert (struck.status if struck else None) == status
    assert len(counted) == wires
    assert known.status == (200 if wires else 404)
    assert (retried.status, retried.replayed) == (200, bool(wires))
    await assert_books_agree(bank, sender, "100.00")


@pytest.mark.parametrize("operation", ["get_wire", "get_operation", "list_events"])
async def test_the_reads_about_wires_are_struck_by_every_kind(bank: Bank, operation: str) -> None:
    sender = await open_sender(bank)
    wire = await sent(bank, sender, "40.00")
    reads: dict[str, Callable[[], Awaitable[Reply]]] = {
        "get_wire": lambda: bank.get(f"/core/wires/{wire}"),
        "get_operation": lambda: bank.wire_operation(wire),
        "list_events": lambda: bank.get("/core/events"),
    }
    read = reads[operation]
    undisturbed = await read()
    answers: dict[str, int | None] = {}

    for kind in ("error", "refuse", "fail_after_success", "accept_then_drop", "duplicate_reply"):
        await bank.fault("core", kind, operation=operation)
        reply = await attempt(read)
        answers[kind] = reply.status if reply else None
        await bank.call("DELETE", "/faults", headers={})
    await bank.fault("core", "latency", operation=operation, milliseconds=200, times=1)
    started = time.monotonic()
    delayed = await read()

    assert answers == {
        "error": 500,
        "refuse": 403,
        "fail_after_success": 500,
        "accept_then_drop": None,
        "duplicate_reply": 200,
    }
    assert time.monotonic() - started >= 0.2
    assert delayed == undisturbed
    assert undisturbed.status == 200


async def test_a_caller_who_left_during_the_latency_has_sent_his_wire_all_the_same(
    bank: Bank,
) -> None:
    sender: Sender = await open_sender(bank)
    key = new_id()
    latency = round(300 * pace())
    await bank.fault("core", "latency", operation="send_wire", milliseconds=latency)

    async def is_waiting() -> bool:
        [rule] = (await bank.call("GET", "/faults", headers={})).body
        return bool(rule["applied"])

    sending = asyncio.create_task(send(bank, sender, "40.00", key))
    await eventually("the bank has the wire", is_waiting)
    sending.cancel()
    await asyncio.wait({sending})
    left = await bank.get(f"/core/wires/{key}")
    await bank.call("DELETE", "/faults", headers={})
    async with asyncio.timeout(10 * pace()):
        while (await bank.get(f"/core/wires/{key}")).status != 200:
            await asyncio.sleep(0.02)
    again = await send(bank, sender, "40.00", key)

    assert left.status == 404
    assert (again.status, again.replayed) == (200, True)
    assert len(await bank.truth("wires", account_id=sender.account_id)) == 1


async def test_under_all_faults_at_once_each_wire_is_sent_once_or_not_at_all(bank: Bank) -> None:
    sender = await open_sender(bank, "100.00")
    for kind in ("error", "fail_after_success", "accept_then_drop", "duplicate_reply"):
        await bank.fault("core", kind, probability=0.2)
    await bank.fault("core", "latency", probability=0.2, milliseconds=50)
    final: dict[str, int] = {}

    async def insist() -> None:
        key = new_id()
        while key not in final:
            reply = await attempt(lambda: send(bank, sender, "1.00", key))
            if reply is not None and reply.status < 500:
                final[key] = reply.status

    async with asyncio.timeout(60 * pace()), asyncio.TaskGroup() as group:
        for _ in range(150):
            group.create_task(insist())
    await bank.call("DELETE", "/faults", headers={})

    wires = await bank.truth("wires", account_id=sender.account_id)
    assert {wire["transaction_id"] for wire in wires} == {k for k, s in final.items() if s == 200}
    assert len(wires) == 100
    await assert_books_agree(bank, sender, "100.00")
