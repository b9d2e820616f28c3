"""A database that went back may lack an approval or a send although it has the wire."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from uuid import UUID, uuid4

import msgspec
import pytest
from sqlalchemy import text

from libs.contracts.errors import InvalidState, LimitExceeded, NotFound, OutcomePending
from libs.contracts.principal import Family, Principal
from libs.contracts.wires import WireState
from libs.persistence.continuity import Compared
from services.payments import approving
from services.payments.models import WireRecord
from services.payments.policies import Policy
from services.payments.repository import wires
from services.payments.rules import Rules
from tests.support.database_life import distrusted
from tests.unit.payments.bench import KEY_SECONDS, MINE, Bench


@pytest.fixture(autouse=True)
def a_customer_of_its_own(bench: Bench) -> None:
    """Policies are a customer's."""
    bench.owner = msgspec.structs.replace(MINE, customer_id=str(uuid4()))


async def compared(bench: Bench, *at_bank: UUID) -> Compared:
    """What the bank holds, with a life that began after all that was done."""
    life_began = datetime.now(UTC) + timedelta(minutes=1)
    async with bench.database.transaction() as connection:
        return await wires.compare(connection, [str(each) for each in at_bank], life_began)


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


async def test_an_operator_may_approve_late_while_it_may_be_the_approval_that_was_lost(
    bench: Bench,
) -> None:
    operator = Principal("", "", Family.OPERATOR, "sub_operator", operator="ada")
    transaction_id = await bench.waiting()
    async with bench.database.transaction() as connection:
        late = "UPDATE wires SET approval_expires_at = now() - interval '1 hour' WHERE transaction_id = :id"
        await connection.execute(text(late), {"id": transaction_id})

    with pytest.raises(InvalidState):
        await approve_as(operator, bench, transaction_id)
    second = msgspec.structs.replace(bench.owner, subscription_key="sub_second")
    async with distrusted(bench.database, lost_seconds=5, began_seconds=5):
        with pytest.raises(InvalidState):
            await bench.approve(transaction_id, second)
        approved = await approve_as(operator, bench, transaction_id)

    assert approved.state is WireState.PENDING_SUBMISSION
    async with bench.database.transaction() as connection:
        wire = await wires.find_any(connection, transaction_id)
    assert wire is not None
    assert wire.is_unknown, "the bank is asked before it is sent, though the life is trusted by now"


async def approve_as(operator: Principal, bench: Bench, transaction_id: UUID) -> WireRecord:
    return await approving.approve_as_operator(
        bench.database, Rules(), operator, transaction_id, reason="It was approved in time."
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
