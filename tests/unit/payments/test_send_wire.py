"""Sending a wire: when it is sent again, and what ends it."""

from __future__ import annotations

import asyncio
import time
from uuid import UUID, uuid4

import msgspec
import pytest
from sqlalchemy import text

from libs.contracts.errors import OutcomePending, ProviderRefused, Unavailable
from libs.contracts.wires import WireState
from libs.providers.outcomes import Accepted, Finding, Outcome
from libs.providers.writing import Capabilities
from services.payments.adapters.sandbox.core import AcceptedWire
from services.payments.customer_turns import CustomerTurns
from services.payments.handlers.sending import SEND_SECONDS
from services.payments.models import WireAtBank, WireRecord
from services.payments.policies import Policy
from services.payments.repository import send_marks
from tests.support.fake_core import refusal
from tests.support.waiting import eventually
from tests.unit.payments.bench import COMMAND, KEY_SECONDS, MINE, TRANSIT_SECONDS, Bench


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
    bench.core.finds_wires = False
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


class Noting:
    """A write that notes how long it may take."""

    operation = "send_wire"
    finds_only_sends = True
    capabilities = Capabilities(KEY_SECONDS, TRANSIT_SECONDS)
    deadline = 0.0

    async def send(self, key: UUID, deadline: float) -> Outcome[AcceptedWire]:
        self.deadline = deadline
        return Accepted(AcceptedWire(str(key)))

    async def find(self, key: UUID, deadline: float) -> Finding[AcceptedWire]:
        raise AssertionError("nothing is asked about")


class NotingBank:
    def __init__(self) -> None:
        self.write = Noting()

    def send_wire(self, wire: WireRecord) -> Noting:
        return self.write

    async def look_up(self, transaction_id: UUID, deadline: float) -> WireAtBank | None:
        raise AssertionError("nothing is asked about")

    async def transaction_id_of(self, bank_id: str, deadline: float) -> UUID | None:
        raise AssertionError("nothing is asked about")


async def test_the_calls_of_a_drive_end_with_its_lease(bench: Bench) -> None:
    bank = NotingBank()
    send = await bench.accepted()
    began = time.time()

    await bench.send(send, attempt=1, lease_seconds=6, bank=bank)

    # Of six turns of renewing, two may have passed since the last one.
    assert bank.write.deadline <= time.time() + 4
    assert bank.write.deadline >= began + 4, "all of it is used"


async def test_a_wire_that_waited_for_its_turn_has_the_whole_time_of_a_send(bench: Bench) -> None:
    bench.owner = msgspec.structs.replace(MINE, customer_id=str(uuid4()))
    await bench.set_policy(Policy(daily_count=10))
    bank, turns = NotingBank(), CustomerTurns()
    send = await bench.accepted()

    async with turns.take(bench.owner.tenant, bench.owner.customer_id or ""):
        drive = asyncio.create_task(
            bench.send(send, attempt=1, lease_seconds=6, bank=bank, turns=turns)
        )
        await asyncio.sleep(0.2)  # others have their turn
        had_its_turn = time.time()
    await drive

    assert bank.write.deadline >= had_its_turn + 4


@pytest.mark.parametrize("state", [WireState.CANCELED, WireState.SUBMITTED, WireState.REJECTED])
async def test_no_send_begins_of_a_wire_that_is_not_pending(bench: Bench, state: WireState) -> None:
    send = await bench.wire(state)

    with pytest.raises(RuntimeError, match="is not pending"):
        async with bench.database.transaction() as connection:
            await send_marks.begin_send(connection, send.command_id)

    assert (await bench.found(send)).send_age_seconds is None


@pytest.mark.parametrize(
    ("code", "detail"),
    [
        ("no\x00such\nthing", "no?such?thing: The bank says no?such?thing."),
        ("x" * 10_000, "x" * 255),
    ],
    ids=["control characters", "long"],
)
@pytest.mark.parametrize("earlier_sends", [False, True])
async def test_a_refusal_by_a_code_that_cannot_be_stored_is_a_refusal(
    bench: Bench, code: str, detail: str, earlier_sends: bool
) -> None:
    bench.core.refusal_code = code
    send = await (bench.wire(first_sent_seconds_ago=1) if earlier_sends else bench.accepted())

    with pytest.raises(ProviderRefused):
        await bench.send(send, attempt=2 if earlier_sends else 1)

    wire = await bench.found(send)
    assert (wire.state, wire.reason_detail) == (WireState.REJECTED, detail)


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


async def test_a_wire_that_the_bank_knows_by_its_id_alone_was_accepted(bench: Bench) -> None:
    send = await bench.accepted()
    bench.core.faults["accept_then_drop"] = 1
    with pytest.raises(OutcomePending):
        await bench.send(send, attempt=1)
    await bench.date_first_send(send, 2 * KEY_SECONDS)
    bench.core.heal()
    bench.core.forget_keys()

    await bench.send(send)

    assert bench.core.executed == {str(send.command_id): 1}
    assert (await bench.found(send)).state is WireState.SUBMITTED


async def test_a_refusal_that_binds_nothing_counts_once_no_earlier_send_can_arrive(
    bench: Bench,
) -> None:
    send = await bench.wire(first_sent_seconds_ago=TRANSIT_SECONDS)
    bench.core.faults["refuse"], bench.core.only = 1, "send_wire"
    with pytest.raises(OutcomePending):
        await bench.send(send)
    assert (await bench.found(send)).is_unknown
    await bench.date_first_send(send, TRANSIT_SECONDS + SEND_SECONDS)

    with pytest.raises(ProviderRefused):
        await bench.send(send)

    assert (await bench.found(send)).state is WireState.REJECTED
    assert bench.core.executed == {}


async def test_refused_resends_do_not_put_off_the_end_of_the_transit_of_the_first(
    bench: Bench,
) -> None:
    send = await bench.wire(first_sent_seconds_ago=30)
    before = (await bench.found(send)).last_sent_at
    bench.core.faults["refuse"], bench.core.only = 1, "send_wire"

    for _ in range(2):
        with pytest.raises(OutcomePending):
            await bench.send(send)

    assert (await bench.found(send)).last_sent_at == before


async def test_a_resend_of_unknown_outcome_begins_the_transit_anew(bench: Bench) -> None:
    send = await bench.wire(first_sent_seconds_ago=30)
    bench.core.faults["error"], bench.core.only = 1, "send_wire"

    with pytest.raises(OutcomePending):
        await bench.send(send)

    wire = await bench.found(send)
    assert (wire.last_send_age_seconds or 99) < 25 < (wire.send_age_seconds or 0)


async def went_back(bench: Bench, seconds_ago: float = 0.0) -> None:
    """As if the database had been restored, and its server been started so long ago."""
    async with bench.database.transaction() as connection:
        await connection.execute(
            text(
                "UPDATE database_life SET checked_at = NULL,"
                " first_seen_at = clock_timestamp() - make_interval(secs => :ago)"
            ),
            {"ago": seconds_ago},
        )


async def test_a_database_that_may_have_gone_back_asks_before_it_sends(bench: Bench) -> None:
    send = await bench.accepted()
    bench.core.carry_out_before(str(send.command_id), COMMAND)
    bench.core.forget_keys()
    await went_back(bench)

    await bench.send(send, attempt=1)

    assert bench.core.executed == {str(send.command_id): 1}
    assert bench.core.received["send_wire"] == 0
    assert (await bench.found(send)).state is WireState.SUBMITTED


async def test_a_database_that_may_have_gone_back_sends_what_the_bank_does_not_know(
    bench: Bench,
) -> None:
    send = await bench.accepted()
    await went_back(bench)

    await bench.send(send, attempt=1)

    assert bench.core.received["get_operation"] == 1
    assert bench.core.executed == {str(send.command_id): 1}


async def test_a_resend_that_a_restored_database_does_not_know_of_may_still_arrive(
    bench: Bench,
) -> None:
    send = await bench.wire(first_sent_seconds_ago=600)
    await went_back(bench, seconds_ago=TRANSIT_SECONDS - 10)
    bench.core.faults["refuse"], bench.core.only = 1, "send_wire"

    with pytest.raises(OutcomePending):
        await bench.send(send)
    await went_back(bench, seconds_ago=TRANSIT_SECONDS + SEND_SECONDS)
    with pytest.raises(ProviderRefused):
        await bench.send(send)

    assert (await bench.found(send)).state is WireState.REJECTED


async def test_a_command_that_a_restored_database_accepted_before_the_key_memory_is_only_asked_about(
    bench: Bench,
) -> None:
    send = await bench.wire()
    await went_back(bench)
    async with bench.database.transaction() as connection:
        await connection.execute(
            text("UPDATE inbox SET accepted_at = accepted_at - make_interval(secs => :ago)"),
            {"ago": KEY_SECONDS},
        )

    with pytest.raises(OutcomePending):
        await bench.send(send)

    assert bench.core.received["send_wire"] == 0


async def test_a_wire_that_may_have_been_sent_before_a_restore_cannot_be_canceled(
    bench: Bench,
) -> None:
    send = await bench.wire()
    bench.core.carry_out_before(str(send.command_id), COMMAND)
    await went_back(bench)

    with pytest.raises(Unavailable):  # which no key keeps
        await bench.cancel(send.command_id)
    await bench.send(send)

    assert (await bench.found(send)).state is WireState.SUBMITTED


async def test_a_wire_that_does_not_say_when_it_was_last_sent_may_be_on_its_way(
    bench: Bench,
) -> None:
    send = await bench.wire(first_sent_seconds_ago=3600)
    async with bench.database.transaction() as connection:
        await connection.execute(text("UPDATE wires SET last_sent_at = NULL"))
    bench.core.faults["refuse"], bench.core.only = 1, "send_wire"

    with pytest.raises(OutcomePending):
        await bench.send(send)

    assert (await bench.found(send)).is_unknown
