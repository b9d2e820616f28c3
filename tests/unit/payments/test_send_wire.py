"""Sending a wire: when it is sent again, and what ends it."""

from __future__ import annotations

import asyncio
import time
from uuid import UUID

import pytest

from libs.contracts.errors import OutcomePending, ProviderRefused
from libs.contracts.wires import WireState
from services.payments.models import WireRecord
from services.payments.repository import wires
from tests.support.fake_core import refusal
from tests.support.waiting import eventually
from tests.unit.payments.bench import KEY_SECONDS, Bench


async def test_a_wire_of_which_the_bank_knows_nothing_is_sent_again_while_its_key_lives(
    bench: Bench,
) -> None:
    send = await bench.wire(first_sent_seconds_ago=KEY_SECONDS - 3600)

    await bench.send(send)

    assert bench.core.executed == {str(send.command_id): 1}
    assert (await bench.found(send)).state is WireState.SUBMITTED


@pytest.mark.parametrize(
    "seconds_left",
    [0.5, 15, 65],
    ids=["less than a drive", "what a clock may be off", "a drive and a clock"],
)
async def test_a_wire_is_not_sent_again_when_its_key_may_run_out_while_the_bank_is_asked(
    bench: Bench, seconds_left: float
) -> None:
    send = await bench.accepted()
    bench.core.faults["accept_then_drop"] = 1
    with pytest.raises(OutcomePending):
        await bench.send(send, attempt=1)
    await bench.date_first_send(send, KEY_SECONDS - seconds_left)
    bench.core.faults = {"latency": 1}
    bench.core.latency_seconds = 30
    again = asyncio.create_task(bench.send(send))

    async def asked() -> bool:
        return bench.core.received["get_operation"] == 1

    await eventually("the bank is asked", asked)
    bench.core.forget_keys()
    bench.core.heal()

    with pytest.raises(OutcomePending):
        await again
    assert bench.core.executed == {str(send.command_id): 1}
    assert (await bench.found(send)).is_unknown


async def test_the_calls_of_a_drive_end_with_its_lease(bench: Bench) -> None:
    class Bank:
        """Notes how long it may take."""

        deadline = 0.0

        async def send_wire(self, wire: WireRecord, deadline: float, *, resumed: bool) -> None:
            self.deadline = deadline

        async def has_wire(self, transaction_id: UUID, deadline: float) -> bool:
            raise AssertionError("nothing is asked about")

    bank = Bank()
    send = await bench.accepted()
    began = time.time()

    await bench.send(send, attempt=1, lease_seconds=6, bank=bank)

    # Of six turns of renewing, two may have passed since the last one.
    assert bank.deadline <= time.time() + 4
    assert bank.deadline >= began + 4, "all of it is used"


@pytest.mark.parametrize("state", [WireState.CANCELED, WireState.SUBMITTED, WireState.REJECTED])
async def test_no_send_begins_of_a_wire_that_is_not_pending(bench: Bench, state: WireState) -> None:
    send = await bench.wire(state)

    with pytest.raises(RuntimeError, match="is not pending"):
        async with bench.database.transaction() as connection:
            await wires.begin_send(connection, send.command_id)

    assert (await bench.found(send)).send_age_seconds is None


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        ("no\x00such\nthing", "no?such?thing"),
        ("x" * 10_000, "x" * 255),
    ],
    ids=["control characters", "long"],
)
@pytest.mark.parametrize("earlier_sends", [False, True])
async def test_a_refusal_by_a_code_that_cannot_be_stored_is_a_refusal(
    bench: Bench, code: str, reason: str, earlier_sends: bool
) -> None:
    bench.core.refusal_code = code
    send = await (bench.wire(first_sent_seconds_ago=1) if earlier_sends else bench.accepted())

    with pytest.raises(ProviderRefused):
        await bench.send(send, attempt=2 if earlier_sends else 1)

    wire = await bench.found(send)
    assert (wire.state, wire.reason) == (WireState.REJECTED, reason)


@pytest.mark.parametrize(
    ("status", "code"),
    [(409, "duplicate_transaction"), (409, "idempotency_key_reused"), (403, "refused")],
)
async def test_a_refusal_that_the_bank_keeps_does_not_end_a_wire_on_which_it_did_not_decide(
    bench: Bench, status: int, code: str
) -> None:
    send = await bench.wire(first_sent_seconds_ago=1)
    bench.core.keys[str(send.command_id)] = "{}", refusal(status, code)

    with pytest.raises(OutcomePending):
        await bench.send(send)

    assert (await bench.found(send)).is_unknown


@pytest.mark.parametrize(
    ("status", "code"),
    [(409, "duplicate_transaction"), (409, "idempotency_key_reused"), (403, "refused")],
)
async def test_a_refusal_is_not_confirmed_by_one_that_is_no_decision(
    bench: Bench, status: int, code: str
) -> None:
    send = await bench.wire(first_sent_seconds_ago=1)
    bench.core.gate.clear()
    sending = asyncio.create_task(bench.send(send))

    async def under_way() -> bool:
        return bench.core.received["send_wire"] == 1

    await eventually("it is sent again, since the bank did not know it", under_way)
    bench.core.keys[str(send.command_id)] = "{}", refusal(status, code)
    bench.core.faults["refuse"], bench.core.only = 1, "send_wire"
    bench.core.gate.set()

    with pytest.raises(OutcomePending):
        await sending
    assert bench.core.received["get_operation"] == 2
    assert (await bench.found(send)).is_unknown
