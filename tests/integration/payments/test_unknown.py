"""Outcomes that are not known at first: each is found out, and nothing is sent twice on the way."""

from __future__ import annotations

import asyncio
import random
import uuid
from collections import Counter
from decimal import Decimal
from functools import partial
from typing import Any

import pytest

from libs.contracts.errors import BanksideError, InsufficientFunds, OutcomePending, ProviderRefused
from tests.integration.payments.desk import Desk, wire
from tests.support.fake_core import FAULTS

pytestmark = pytest.mark.asyncio(loop_scope="session")


@pytest.mark.parametrize(
    "kind", ["error", "fail_after_success", "accept_then_drop", "duplicate_reply"]
)
async def test_a_fault_once_is_not_the_callers_affair(desk: Desk, kind: str) -> None:
    desk.core.faults[kind] = 1
    desk.core.only = "send_wire"
    transaction_id = str(uuid.uuid4())
    sending = asyncio.create_task(desk.send(command_id=transaction_id))

    async def struck() -> bool:
        return desk.core.received["send_wire"] >= 1

    await desk.until("the fault has struck", struck)
    desk.core.heal()
    sent = await sending

    assert sent["transaction_id"] == transaction_id
    assert desk.core.executed == {transaction_id: 1}


async def test_a_slow_bank_that_carries_the_wire_out_later_carries_it_out_once(desk: Desk) -> None:
    desk.core.gate.clear()
    transaction_id = str(uuid.uuid4())
    sending = asyncio.create_task(desk.send(command_id=transaction_id))

    async def sent_again() -> bool:
        return desk.core.received["send_wire"] >= 2

    await desk.until("it was sent again", sent_again)
    desk.core.gate.set()
    await sending

    await desk.until_quiet()
    assert desk.core.executed == {transaction_id: 1}


async def test_a_refusal_that_the_bank_does_not_keep_does_not_end_a_wire_that_is_on_its_way(
    desk: Desk,
) -> None:
    transaction_id = str(uuid.uuid4())
    desk.core.gate.clear()
    sending = asyncio.create_task(desk.send(command_id=transaction_id))

    async def received(times: int) -> bool:
        return desk.core.received["send_wire"] >= times

    await desk.until("the first send is on its way", lambda: received(1))
    held_back, desk.core.gate = desk.core.gate, asyncio.Event()
    desk.core.gate.set()
    desk.core.faults["refuse"], desk.core.only = 1, "send_wire"
    await desk.until("the second was refused", lambda: received(2))
    desk.core.heal()
    desk.core.linked.clear()  # a third would be refused for good
    desk.core.linked.add("ext_1")
    held_back.set()
    sent = await sending

    assert sent["transaction_id"] == transaction_id
    assert desk.core.executed == {transaction_id: 1}
    await desk.has_events(transaction_id, "created", "submitted")


async def test_a_first_send_that_is_refused_is_refused(desk: Desk) -> None:
    desk.core.faults["refuse"] = 1

    with pytest.raises(ProviderRefused):
        await desk.send()

    assert not desk.core.executed


async def test_a_key_that_the_bank_has_for_something_else_is_no_refusal(desk: Desk) -> None:
    transaction_id = str(uuid.uuid4())
    desk.core.keys[transaction_id] = "{}", (200, {"transaction_id": "another"})

    async def does_not_decide() -> bool:
        return "provider_does_not_decide" in desk.office.replicas[0].log

    with pytest.raises(OutcomePending):
        await desk.send(command_id=transaction_id, wait_seconds=4)

    # Its sender is told so at a fixed time, which may be before the drive has come so far.
    await desk.until("the bank's answer is noted", does_not_decide)
    assert (await desk.get(transaction_id))["state"] == "pending_submission"


async def test_a_wire_is_not_sent_again_when_the_bank_may_have_forgotten_its_key(
    desk: Desk,
) -> None:
    # The bank has the wire, and tells so neither by its key nor by the feed.
    desk.core.finds_wires, desk.core.silent = False, True
    desk.core.faults["accept_then_drop"] = 1
    transaction_id = str(uuid.uuid4())
    with pytest.raises(OutcomePending):
        await desk.send(command_id=transaction_id, wait_seconds=3.2)
    await desk.until("the bank has it", partial(has_executed, desk, transaction_id))
    await desk.until("it is not driven", partial(desk.rests, transaction_id))
    # A day later.
    await desk.database.execute(
        "UPDATE wires SET send_begun_at = send_begun_at - interval '24 hours' WHERE transaction_id = $1",
        uuid.UUID(transaction_id),
    )
    desk.core.heal()
    desk.core.events.clear()
    desk.core.forget_keys()
    sends, questions = desk.core.received["send_wire"], desk.core.received["get_operation"]

    async def asked() -> bool:
        return desk.core.received["get_operation"] > questions

    async def left_to_an_operator() -> bool:
        lines = desk.office.replicas[0].log.splitlines()
        return any("wire_needs_an_operator" in line and transaction_id in line for line in lines)

    await desk.due_now()
    await desk.until("the bank was asked", asked)
    await desk.until("it is left to an operator", left_to_an_operator)

    assert desk.core.received["send_wire"] == sends
    assert (await desk.get(transaction_id))["state"] == "pending_submission"
    assert desk.core.executed == {transaction_id: 1}


async def has_executed(desk: Desk, transaction_id: str) -> bool:
    return desk.core.executed[transaction_id] == 1


async def test_with_every_fault_at_once_each_wire_exists_once_or_not_at_all(desk: Desk) -> None:
    account = desk.fund("acc_crowd", Decimal("300.00"))
    desk.core.faults = dict.fromkeys(FAULTS, 0.2)
    desk.core.latency_seconds = 30
    ids = [str(uuid.uuid4()) for _ in range(40)]
    command = wire(sending_account_id="acc_crowd", amount=Decimal("10.00"))

    async def send(transaction_id: str) -> Any:
        await asyncio.sleep(random.uniform(0, 3))
        try:
            return await desk.send(command, command_id=transaction_id, wait_seconds=6)
        except BanksideError as error:
            return error

    async def idle() -> bool:
        return desk.core.unanswered == 0

    outcomes = dict(zip(ids, await asyncio.gather(*map(send, ids)), strict=True))
    pending = [one for one, told in outcomes.items() if isinstance(told, OutcomePending)]
    desk.core.heal()
    await desk.until_quiet(60, without_pauses=True)
    await desk.until("the bank is at no request any more", idle)
    told = {one: await _final(desk, command, one) for one in ids}

    accepted = {one for one, outcome in told.items() if isinstance(outcome, dict)}
    refusals = {one: outcome for one, outcome in told.items() if one not in accepted}
    for one in set(ids) - set(pending):
        assert type(told[one]) is type(outcomes[one])
    assert all(isinstance(o, InsufficientFunds | ProviderRefused) for o in refusals.values())
    assert desk.core.executed == dict.fromkeys(accepted, 1)
    assert account.available == Decimal(300) - 10 * len(accepted)
    assert account.lowest >= 0
    states = Counter([(await desk.get(one))["state"] for one in ids])
    assert states == {"submitted": len(accepted), "rejected": len(refusals)}
    await desk.has_told(accepted, "created", "submitted")
    await desk.has_told(refusals, "created", "rejected")
    print(f"accepted {len(accepted)}, refused {len(refusals)}, told pending {len(pending)}")


async def _final(desk: Desk, command: Any, transaction_id: str) -> Any:
    try:
        return await desk.send(command, command_id=transaction_id)
    except BanksideError as error:
        return error
