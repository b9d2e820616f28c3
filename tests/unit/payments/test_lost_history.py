"""A database that went back may lack an approval or a send although it has the wire."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta
from typing import NoReturn
from uuid import UUID, uuid4

import msgspec
import pytest
from sqlalchemy import text

from libs.contracts.errors import (
    InvalidState,
    LimitExceeded,
    NotFound,
    OutcomePending,
    Unavailable,
)
from libs.contracts.operating import wires as contract
from libs.contracts.principal import Family, Principal
from libs.contracts.wires import WireState
from libs.persistence.continuity import Compared
from services.payments import approving, states
from services.payments.effective_policies import EffectivePolicies
from services.payments.expiring import expire
from services.payments.handlers import send_wire
from services.payments.handlers.operating import OperatingWires
from services.payments.models import WireRecord
from services.payments.policies import Policy
from services.payments.repository import send_writes, sends, wires
from tests.support.database_life import distrusted
from tests.support.ids import made_id
from tests.unit.payments.bench import (
    COMMAND,
    KEY_SECONDS,
    MINE,
    TRANSIT_SECONDS,
    Bench,
    EveryAccountIsOwned,
)

OPERATOR = Principal("", "", Family.OPERATOR, "sub_operator", operator="ada")
DECIDED = "The customer was told that it is canceled."


@pytest.fixture(autouse=True)
def a_customer_of_its_own(bench: Bench) -> None:
    """Policies are a customer's."""
    bench.owner = msgspec.structs.replace(MINE, customer_id=str(uuid4()))


async def compared(bench: Bench, *at_bank: UUID) -> Compared:
    """What the bank holds, with a life that began after all that was done."""
    life_began = datetime.now(UTC) + timedelta(minutes=1)
    async with bench.database.transaction() as connection:
        return await wires.compare(connection, [str(each) for each in at_bank], life_began)


async def test_a_wire_of_other_software_at_the_bank_is_none_that_was_lost(bench: Bench) -> None:
    lost = made_id()

    assert await compared(bench, lost, uuid4()) == Compared(missing=[str(lost)], reaches_back=False)


async def test_a_wire_that_was_sent_is_known_and_older_than_the_life_once_its_command_is_final(
    bench: Bench,
) -> None:
    leased = await bench.wire(WireState.SUBMITTED, first_sent_seconds_ago=10)

    before = await compared(bench, leased.command_id)
    await bench.finish(leased)

    assert before == Compared(missing=[], reaches_back=False)
    assert await compared(bench, leased.command_id) == Compared(missing=[], reaches_back=True)


async def test_a_wire_that_the_bank_holds_and_whose_approval_was_lost_is_missing(
    bench: Bench,
) -> None:
    transaction_id = await bench.waiting()
    async with bench.database.transaction() as connection:
        final = "UPDATE inbox SET finished_at = now() WHERE command_id = :id"
        await connection.execute(text(final), {"id": transaction_id})

    found = await compared(bench, transaction_id)

    assert found == Compared(missing=[str(transaction_id)], reaches_back=False)


@pytest.mark.parametrize("state", [None, WireState.CANCELED])
async def test_a_wire_that_the_bank_holds_and_whose_send_was_lost_is_missing(
    bench: Bench, state: WireState | None
) -> None:
    leased = await bench.wire(*([state] if state else []))

    found = await compared(bench, leased.command_id)

    assert found == Compared(missing=[str(leased.command_id)], reaches_back=False)


async def test_a_lost_send_that_the_banks_report_brought_back_is_not_missing(bench: Bench) -> None:
    leased = await bench.wire(WireState.SUBMITTED, WireState.COMPLETED)

    found = await compared(bench, leased.command_id)

    assert found == Compared(missing=[], reaches_back=False)


async def test_a_wire_that_waited_for_days_is_sent_while_a_restarted_database_is_unchecked(
    bench: Bench,
) -> None:
    transaction_id = await bench.waiting()
    async with bench.database.transaction() as connection:
        age = "UPDATE inbox SET accepted_at = now() - make_interval(secs => :ago) WHERE command_id = :id"
        await connection.execute(text(age), {"ago": 2 * KEY_SECONDS, "id": transaction_id})
    second = msgspec.structs.replace(bench.owner, subscription_key="sub_second")

    async with distrusted(bench.database, lost_seconds=5, began_seconds=5):
        await bench.approve(transaction_id, second)

    assert bench.core.received["send_wire"] == 1


async def waited_too_long(bench: Bench) -> UUID:
    transaction_id = await bench.waiting()
    async with bench.database.transaction() as connection:
        late = "UPDATE wires SET approval_expires_at = now() - interval '1 hour' WHERE transaction_id = :id"
        await connection.execute(text(late), {"id": transaction_id})
    return transaction_id


async def test_that_the_time_is_over_is_no_final_answer_to_an_approval_that_was_lost(
    bench: Bench,
) -> None:
    """The bank carried the wire out, and its approver repeats the approval as asked to after a restore."""
    transaction_id = await waited_too_long(bench)
    second = msgspec.structs.replace(bench.owner, subscription_key="sub_second")
    approval = await bench.accepted_approval(transaction_id, second)
    async with distrusted(bench.database, lost_seconds=5, began_seconds=60):
        with pytest.raises(OutcomePending):
            await bench.approve(transaction_id, second, leased=approval)

    with pytest.raises(InvalidState):
        await bench.approve(transaction_id, second, leased=approval, attempt=2)


async def test_a_wire_does_not_expire_while_it_may_be_its_approval_that_was_lost(
    bench: Bench,
) -> None:
    transaction_id = await waited_too_long(bench)

    async with distrusted(bench.database, lost_seconds=5, began_seconds=5):
        await expire(bench.database)
        meanwhile = await bench.found_by(transaction_id)
    await expire(bench.database)

    assert meanwhile.waits_for_approval
    assert (await bench.found_by(transaction_id)).state is WireState.CANCELED


async def test_an_operator_may_approve_late_while_it_may_be_the_approval_that_was_lost(
    bench: Bench,
) -> None:
    transaction_id = await waited_too_long(bench)

    with pytest.raises(InvalidState):
        await approve_as(OPERATOR, bench, transaction_id)
    second = msgspec.structs.replace(bench.owner, subscription_key="sub_second")
    async with distrusted(bench.database, lost_seconds=5, began_seconds=5):
        with pytest.raises(OutcomePending):
            await bench.approve(transaction_id, second)
        approved = await approve_as(OPERATOR, bench, transaction_id)
        with pytest.raises(InvalidState):
            await bench.approve(transaction_id, second)

    assert approved.state is WireState.PENDING_SUBMISSION
    async with bench.database.transaction() as connection:
        wire = await wires.find_any(connection, transaction_id)
    assert wire is not None
    assert wire.is_unknown, "the bank is asked before it is sent, though the life is trusted by now"


async def approve_as(operator: Principal, bench: Bench, transaction_id: UUID) -> WireRecord:
    return await approving.approve_as_operator(
        bench.database,
        EffectivePolicies(),
        operator,
        transaction_id,
        reason="It was approved in time.",
    )


async def test_a_limit_is_no_final_answer_to_a_wire_that_the_bank_may_have(bench: Bench) -> None:
    """Its caller repeats it as asked to after a restore, when others have used up the day's limit."""
    leased = await bench.accepted()
    await bench.set_policy(Policy(daily_count=1))
    await bench.send(await bench.accepted(), attempt=1)
    async with distrusted(bench.database, lost_seconds=5, began_seconds=60):
        with pytest.raises(OutcomePending):
            await bench.send(leased, attempt=1)

    with pytest.raises(LimitExceeded):
        await bench.send(leased, attempt=2)


async def test_an_account_that_is_not_known_any_more_is_no_final_answer_either(
    bench: Bench,
) -> None:
    leased = await bench.accepted()
    bench.owner = msgspec.structs.replace(bench.owner, customer_id=None)
    async with distrusted(bench.database, lost_seconds=5, began_seconds=60):
        with pytest.raises(OutcomePending):
            await bench.send(leased, attempt=1)

    with pytest.raises(NotFound):
        await bench.send(leased, attempt=2)


async def test_a_limit_is_no_final_answer_to_an_approval_that_was_lost(bench: Bench) -> None:
    transaction_id = await bench.waiting()
    await bench.set_policy(Policy(daily_count=2))
    await bench.send(await bench.accepted(), attempt=1)
    await bench.set_policy(Policy(daily_count=1))
    second = msgspec.structs.replace(bench.owner, subscription_key="sub_second")
    async with distrusted(bench.database, lost_seconds=5, began_seconds=60):
        with pytest.raises(OutcomePending):
            await bench.approve(transaction_id, second)

    with pytest.raises(LimitExceeded):
        await bench.approve(transaction_id, second)


async def decide(bench: Bench, decision: str, transaction_id: UUID) -> None:
    match decision:
        case "approve":
            await bench.approve(transaction_id, bench.owner)
        case "decline":
            await bench.decline(transaction_id, bench.owner)
        case _:
            await bench.cancel(transaction_id)


@pytest.mark.parametrize("decision", ["approve", "decline", "cancel"])
async def test_a_decision_on_a_wire_that_was_lost_is_not_refused_for_good(
    bench: Bench, decision: str
) -> None:
    """The wire is found once it is repeated."""
    async with distrusted(bench.database, lost_seconds=5, began_seconds=60):
        with pytest.raises(OutcomePending):
            await decide(bench, decision, uuid4())

    with pytest.raises(NotFound):
        await decide(bench, decision, uuid4())


async def accepted_before(bench: Bench, *commands: UUID, life: str = "restored") -> None:
    """As if the commands had been accepted in an earlier life of the database, or by a release that did not note it."""
    earlier = {"restored": "life_started_at - interval '1 day'", "not noted": "NULL"}[life]
    async with bench.database.transaction() as connection:
        await connection.execute(
            text(f"UPDATE inbox SET life_started_at = {earlier} WHERE command_id = ANY(:ids)"),
            {"ids": list(commands)},
        )


@pytest.mark.parametrize("life", ["restored", "not noted"])
async def test_a_wire_of_before_a_restore_that_the_bank_does_not_know_is_not_sent_while_it_may_be_canceled(
    bench: Bench, life: str
) -> None:
    leased = await bench.wire()
    await accepted_before(bench, leased.command_id, life=life)
    async with distrusted(bench.database, lost_seconds=TRANSIT_SECONDS, began_seconds=60):
        with pytest.raises(OutcomePending):
            await bench.send(leased)
        held_back = await bench.found(leased)
        with pytest.raises(Unavailable):
            await bench.cancel(leased.command_id)
    sent_before = bench.core.received["send_wire"]

    await bench.send(leased)

    assert not held_back.is_unknown, "nothing of it was sent"
    assert sent_before == 0
    assert bench.core.executed == {str(leased.command_id): 1}


async def test_a_send_of_before_a_restore_that_never_arrived_is_not_repeated_either(
    bench: Bench,
) -> None:
    leased = await bench.wire(first_sent_seconds_ago=TRANSIT_SECONDS)
    last_sent_at = (await bench.found(leased)).last_sent_at
    await accepted_before(bench, leased.command_id)

    async with distrusted(bench.database, lost_seconds=TRANSIT_SECONDS, began_seconds=60):
        with pytest.raises(OutcomePending):
            await bench.send(leased)

    assert bench.core.received["send_wire"] == 0
    assert (await bench.found(leased)).last_sent_at == last_sent_at


@pytest.mark.parametrize("policy", [None, Policy(daily_count=10)], ids=["no policy", "a policy"])
async def test_a_wire_that_was_asked_for_before_a_restore_and_not_recorded_is_not_sent_either(
    bench: Bench, policy: Policy | None
) -> None:
    leased = await bench.accepted()
    if policy is not None:
        await bench.set_policy(policy)
    await accepted_before(bench, leased.command_id)

    async with distrusted(bench.database, lost_seconds=5, began_seconds=60):
        with pytest.raises(OutcomePending):
            await bench.send(leased)

    assert bench.core.received["send_wire"] == 0
    assert not (await bench.found(leased)).is_unknown


async def test_a_wire_that_is_held_back_can_be_canceled_later_also_where_the_process_ended_with_its_first_commit(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    leased = await bench.accepted()
    await accepted_before(bench, leased.command_id)
    monkeypatch.setattr(send_wire, "begun_of", end_now)
    async with distrusted(bench.database, lost_seconds=TRANSIT_SECONDS, began_seconds=60):
        with pytest.raises(ProcessEnded):
            await bench.send(leased, attempt=1)
        held_back = await bench.found(leased)

    await bench.cancel(leased.command_id)

    assert not held_back.is_unknown, "nothing of it was sent"
    assert (await bench.found(leased)).state is WireState.CANCELED


class ProcessEnded(BaseException):
    pass


def end_now(*_: object) -> NoReturn:
    raise ProcessEnded


async def test_a_wire_of_before_a_restore_that_the_bank_has_is_recorded(bench: Bench) -> None:
    leased = await bench.wire()
    bench.core.carry_out_before(str(leased.command_id), COMMAND)
    await accepted_before(bench, leased.command_id)

    async with distrusted(bench.database, lost_seconds=5, began_seconds=60):
        await bench.send(leased)

    assert bench.core.received["send_wire"] == 0
    assert (await bench.found(leased)).state is WireState.SUBMITTED


@pytest.mark.parametrize(
    ("at_bank", "recorded"),
    [
        ("completed", [WireState.COMPLETED]),
        ("rejected", [WireState.REJECTED]),
        ("returned", [WireState.COMPLETED, WireState.RETURNED]),
    ],
)
async def test_a_wire_that_was_lost_and_is_repeated_is_in_the_state_that_it_has_at_the_bank(
    bench: Bench, at_bank: str, recorded: list[WireState]
) -> None:
    """The feed has told of it before it was repeated, and does not tell again."""
    leased = await bench.accepted()
    transaction_id = str(leased.command_id)
    bench.core.carry_out_before(transaction_id, COMMAND)
    bench.core.become(at_bank, transaction_id, "the bank's words")
    await bench.apply_feed()

    async with distrusted(bench.database, lost_seconds=5, began_seconds=60):
        answer = await bench.send(leased, attempt=1)

    assert answer.data is not None
    wire = await bench.found(leased)
    assert [step.state for step in wire.history] == [
        WireState.PENDING_SUBMISSION,
        WireState.SUBMITTED,
        *recorded,
    ]
    assert wire.reason_detail == (None if at_bank == "completed" else "the bank's words")
    async with bench.database.transaction() as connection:
        events = "SELECT count(*) FROM outbox WHERE resource_id = :id"
        told = await connection.execute(text(events), {"id": transaction_id})
        assert told.scalar_one() == 2 + len(recorded)


async def test_a_wire_of_a_denied_customer_that_was_lost_is_recorded_where_the_bank_has_it(
    bench: Bench,
) -> None:
    bench.is_denied = True
    carried_out, unknown = await bench.accepted(), await bench.accepted()
    bench.core.carry_out_before(str(carried_out.command_id), COMMAND)

    async with distrusted(bench.database, lost_seconds=5, began_seconds=60):
        await bench.send(carried_out, attempt=1)
        with pytest.raises(OutcomePending):
            await bench.send(unknown, attempt=1)

    assert (await bench.found(carried_out)).state is WireState.SUBMITTED
    assert bench.core.received["send_wire"] == 0


async def test_a_wire_that_was_canceled_while_the_bank_was_asked_contradicts_what_the_bank_shows(
    bench: Bench,
) -> None:
    leased = await bench.wire(first_sent_seconds_ago=5)
    pending = await bench.found(leased)
    versions = states.catch_up(pending, WireState.COMPLETED, at=datetime.now(UTC))
    async with bench.database.transaction() as connection:
        canceled = states.advance(pending, WireState.CANCELED, at=datetime.now(UTC))
        assert await wires.save(connection, canceled)

    async with bench.database.transaction() as connection:
        standing = await send_writes.save_unless_moved_on(connection, versions)

    assert standing.state is WireState.CANCELED
    assert (await bench.found(leased)).state is WireState.CANCELED
    async with bench.database.transaction() as connection:
        found = await connection.execute(
            text("SELECT kind, ours, theirs FROM contradiction WHERE transaction_id = :id"),
            {"id": str(leased.command_id)},
        )
        assert [tuple(row) for row in found] == [
            ("provider_contradicts_record", "canceled", "completed")
        ]


async def test_a_wire_that_may_have_been_declined_is_not_sent_once_it_is_approved(
    bench: Bench,
) -> None:
    transaction_id = await bench.waiting()
    await accepted_before(bench, transaction_id)
    second = msgspec.structs.replace(bench.owner, subscription_key="sub_second")
    approval = await bench.accepted_approval(transaction_id, second)
    async with distrusted(bench.database, lost_seconds=5, began_seconds=60):
        with pytest.raises(OutcomePending):
            await bench.approve(transaction_id, second, leased=approval)
    sent_before = bench.core.received["send_wire"]

    await bench.approve(transaction_id, second, leased=approval, attempt=2)

    assert sent_before == 0
    assert bench.core.executed == {str(transaction_id): 1}


async def test_an_approval_of_before_a_restore_sends_no_wire_of_after_it(bench: Bench) -> None:
    """The wire was repeated after the restore, and the approval, which had found none, was driven on."""
    transaction_id = await bench.waiting()
    second = msgspec.structs.replace(bench.owner, subscription_key="sub_second")
    approval = await bench.accepted_approval(transaction_id, second)
    await accepted_before(bench, approval.command_id)

    async with distrusted(bench.database, lost_seconds=5, began_seconds=60):
        with pytest.raises(OutcomePending):
            await bench.approve(transaction_id, second, leased=approval)

    assert bench.core.received["send_wire"] == 0


def operating(bench: Bench) -> OperatingWires:
    return OperatingWires(
        bench.database,
        bench.bank,
        EveryAccountIsOwned(),
        EffectivePolicies(),
        transit_seconds=TRANSIT_SECONDS,
    )


async def cancel_as_operator(bench: Bench, transaction_id: UUID) -> None:
    command = contract.OperatorCancelWire(transaction_id=str(transaction_id), reason=DECIDED)
    await operating(bench).cancel_wire(OPERATOR, command, time.time() + 10)


async def decline_as_operator(bench: Bench, transaction_id: UUID) -> None:
    command = contract.OperatorDeclineWire(transaction_id=str(transaction_id), reason=DECIDED)
    await operating(bench).decline_wire(OPERATOR, command, time.time() + 10)


async def state_of(bench: Bench, transaction_id: UUID) -> WireState:
    async with bench.database.transaction() as connection:
        wire = await wires.find_any(connection, transaction_id)
    assert wire is not None
    return wire.state


async def test_an_operator_cancels_a_wire_that_the_bank_does_not_have_while_sends_may_be_lost(
    bench: Bench,
) -> None:
    leased = await bench.wire()
    await accepted_before(bench, leased.command_id)

    async with distrusted(bench.database, lost_seconds=TRANSIT_SECONDS, began_seconds=60):
        await cancel_as_operator(bench, leased.command_id)

    with pytest.raises(InvalidState):
        await bench.send(leased)
    assert (await bench.found(leased)).history[-1].comment == DECIDED
    assert bench.core.received["send_wire"] == 0


async def test_an_operator_declines_a_wire_that_the_bank_does_not_have_while_sends_may_be_lost(
    bench: Bench,
) -> None:
    transaction_id = await bench.waiting()

    async with distrusted(bench.database, lost_seconds=TRANSIT_SECONDS, began_seconds=60):
        await decline_as_operator(bench, transaction_id)

    assert await state_of(bench, transaction_id) is WireState.CANCELED


async def test_an_operator_cancels_no_wire_of_which_a_lost_send_may_still_arrive(
    bench: Bench,
) -> None:
    leased, waiting = await bench.wire(), await bench.waiting()

    async with distrusted(bench.database, lost_seconds=TRANSIT_SECONDS - 5, began_seconds=60):
        with pytest.raises(Unavailable):
            await cancel_as_operator(bench, leased.command_id)
        with pytest.raises(Unavailable):
            await decline_as_operator(bench, waiting)

    assert bench.core.received["get_wire"] == 0


async def test_an_operator_cancels_no_wire_that_the_bank_has(bench: Bench) -> None:
    leased = await bench.wire()
    bench.core.carry_out_before(str(leased.command_id), COMMAND)

    async with distrusted(bench.database, lost_seconds=TRANSIT_SECONDS, began_seconds=60):
        with pytest.raises(InvalidState) as refused:
            await cancel_as_operator(bench, leased.command_id)

    assert "The bank has the wire" in refused.value.detail
    assert (await bench.found(leased)).is_pending


async def test_an_operator_cancels_no_wire_while_the_bank_gives_no_answer(bench: Bench) -> None:
    leased = await bench.wire()
    bench.core.faults["error"] = 1

    async with distrusted(bench.database, lost_seconds=TRANSIT_SECONDS, began_seconds=60):
        with pytest.raises(Unavailable) as refused:
            await cancel_as_operator(bench, leased.command_id)

    assert "gives no answer" in refused.value.detail


async def test_what_waited_for_the_check_of_a_life_is_driven_at_once(bench: Bench) -> None:
    pending, held, parked = [await bench.accepted() for _ in range(3)]
    await bench.let_go(pending, seconds=30)
    await bench.let_go(held, seconds=300)
    await bench.let_go(parked, seconds=30)
    async with bench.database.transaction() as connection:
        parks = "UPDATE inbox SET parked_at = now() WHERE command_id = :id"
        await connection.execute(text(parks), {"id": parked.command_id})

    async with bench.database.transaction() as connection:
        await sends.make_pending_due(connection)

    assert await bench.rests_for(pending) <= 0
    assert await bench.rests_for(held) > 60
    assert await bench.rests_for(parked) > 0
