"""Wires that the bank had when the database was found to lack their sends: none is sent again after the case."""

from __future__ import annotations

from decimal import Decimal
from uuid import UUID

import msgspec
import pytest
from sqlalchemy import text

from libs.contracts.errors import InvalidState, OutcomePending
from libs.contracts.wires import WireState
from libs.persistence import continuity, inbox
from services.payments.expiring import expire
from services.payments.policies import Policy
from services.payments.unsent import SEND_WAS_LOST
from tests.support.database_life import distrust_life
from tests.unit.payments.bench import COMMAND, TRANSIT_SECONDS, Bench
from tests.unit.payments.test_lost_history import (
    OPERATOR,
    approve_as,
    cancel_as_operator,
    waited_too_long,
)
from tests.unit.payments.test_mended_losses import cases, check
from tests.unit.payments.test_resolving import resolve

pytestmark = pytest.mark.usefixtures("a_customer_of_its_own")
ONE_AND_APPROVED = Policy(daily_count=1, approval_threshold=Decimal("1.00"))


async def found_missing_and_closed(bench: Bench, *transaction_ids: UUID) -> None:
    """The bank has the wires, their sends were found missing, an operator closed the case, and the server
    started anew.
    """
    await distrust_life(bench.database, lost_seconds=TRANSIT_SECONDS + 1, began_seconds=60)
    await check(bench, *transaction_ids)
    async with bench.database.transaction() as connection:
        assert await continuity.close(connection, by="ada", reason="The callers were told.")
        earlier = "UPDATE database_life SET started_at = started_at - interval '1 hour'"
        await connection.execute(text(earlier))
        present = "INSERT INTO database_life (started_at, checked_at) VALUES (pg_postmaster_start_time(), now())"
        await connection.execute(text(present))


async def carried_out(bench: Bench) -> inbox.Leased:
    leased = await bench.accepted()
    bench.core.carry_out_before(str(leased.command_id), COMMAND)
    await found_missing_and_closed(bench, leased.command_id)
    return leased


@pytest.mark.parametrize("policy", [None, Policy(daily_count=10)], ids=["no policy", "a policy"])
async def test_a_repetition_after_the_case_is_closed_records_the_wire_that_the_bank_has(
    bench: Bench, policy: Policy | None
) -> None:
    if policy is not None:
        await bench.set_policy(policy)
    leased = await carried_out(bench)
    bench.core.forget_keys()

    await bench.send(leased, attempt=1)

    assert bench.core.received["send_wire"] == 0
    assert (await bench.found(leased)).state is WireState.SUBMITTED
    assert await cases(bench) == [], "it was recorded as missing before"


@pytest.mark.parametrize("policy", [Policy(daily_count=1), ONE_AND_APPROVED])
async def test_a_limit_does_not_refuse_a_missing_wire_that_the_bank_has(
    bench: Bench, policy: Policy
) -> None:
    leased = await carried_out(bench)
    await bench.send(await bench.accepted(), attempt=1)
    await bench.set_policy(policy)
    bench.core.forget_keys()

    await bench.send(leased, attempt=1)

    assert bench.core.received["send_wire"] == 1, "that of the other"
    assert (await bench.found(leased)).state is WireState.SUBMITTED


async def test_a_limit_is_no_final_answer_to_a_missing_wire_that_the_bank_does_not_show(
    bench: Bench,
) -> None:
    leased = await bench.accepted()
    await found_missing_and_closed(bench, leased.command_id)
    await bench.set_policy(Policy(per_wire_limit=Decimal("1.00")))

    with pytest.raises(OutcomePending):
        await bench.send(leased, attempt=1)

    assert bench.core.received["send_wire"] == 0


async def test_that_its_customer_is_denied_does_not_refuse_a_missing_wire_that_the_bank_has(
    bench: Bench,
) -> None:
    leased = await carried_out(bench)
    bench.core.forget_keys()
    bench.is_denied = True

    await bench.send(leased, attempt=1)

    assert bench.core.received["send_wire"] == 0
    assert (await bench.found(leased)).state is WireState.SUBMITTED


async def test_an_account_that_is_not_known_any_more_is_no_final_answer_to_a_missing_wire(
    bench: Bench,
) -> None:
    leased = await carried_out(bench)
    bench.owner = msgspec.structs.replace(bench.owner, customer_id=None)

    with pytest.raises(OutcomePending):
        await bench.send(leased, attempt=1)


async def test_a_missing_wire_that_the_bank_does_not_show_is_left_to_an_operator(
    bench: Bench,
) -> None:
    leased = await bench.accepted()
    await found_missing_and_closed(bench, leased.command_id)

    with pytest.raises(OutcomePending):
        await bench.send(leased, attempt=1)
    with pytest.raises(OutcomePending):
        await bench.send(leased, attempt=2)

    assert bench.core.received["send_wire"] == 0
    await bench.let_go(leased)
    await bench.date_first_send(leased, TRANSIT_SECONDS + 1)
    assert (await resolve(bench, leased, WireState.REJECTED)).state is WireState.REJECTED


async def test_an_approval_after_the_case_is_closed_records_the_wire_that_the_bank_has(
    bench: Bench,
) -> None:
    transaction_id = await bench.waiting()
    bench.core.carry_out_before(str(transaction_id), COMMAND)
    await found_missing_and_closed(bench, transaction_id)
    bench.core.forget_keys()
    second = msgspec.structs.replace(bench.owner, subscription_key="sub_second")

    await bench.approve(transaction_id, second)

    assert bench.core.received["send_wire"] == 0
    assert (await bench.found_by(transaction_id)).state is WireState.SUBMITTED


async def test_a_pending_wire_that_was_found_missing_is_not_sent_by_its_next_drive(
    bench: Bench,
) -> None:
    leased = await bench.wire()
    bench.core.carry_out_before(str(leased.command_id), COMMAND)
    await found_missing_and_closed(bench, leased.command_id)
    bench.core.forget_keys()

    await bench.send(leased)

    assert bench.core.received["send_wire"] == 0
    assert (await bench.found(leased)).state is WireState.SUBMITTED


@pytest.mark.parametrize("decision", ["cancel", "decline", "cancel as operator"])
async def test_a_missing_wire_is_not_ended_after_the_case_is_closed(
    bench: Bench, decision: str
) -> None:
    transaction_id = await bench.waiting()
    await found_missing_and_closed(bench, transaction_id)
    second = msgspec.structs.replace(bench.owner, subscription_key="sub_second")

    with pytest.raises(InvalidState) as refused:
        match decision:
            case "cancel":
                await bench.cancel(transaction_id)
            case "decline":
                await bench.decline(transaction_id, second)
            case _:
                await cancel_as_operator(bench, transaction_id)

    assert refused.value.detail == SEND_WAS_LOST
    assert (await bench.found_by(transaction_id)).waits_for_approval


async def test_a_missing_wire_whose_time_for_approval_is_over_waits_for_an_operators_approval(
    bench: Bench,
) -> None:
    missing, unsent = await waited_too_long(bench), await waited_too_long(bench)
    await found_missing_and_closed(bench, missing)
    second = msgspec.structs.replace(bench.owner, subscription_key="sub_second")

    await expire(bench.database)
    with pytest.raises(InvalidState) as refused:
        await bench.approve(missing, second)

    assert refused.value.detail == SEND_WAS_LOST
    assert (await bench.found_by(unsent)).state is WireState.CANCELED
    assert (await bench.found_by(missing)).state is WireState.PENDING_APPROVAL
    assert (await approve_as(OPERATOR, bench, missing)).is_pending
