"""Limits and approvals of wires: on a real database, each drive made by the test."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any
from uuid import UUID, uuid4

import msgspec
import pytest
from sqlalchemy import text

from libs.contracts.errors import (
    BanksideError,
    InvalidState,
    LimitExceeded,
    NotFound,
)
from libs.contracts.principal import Principal
from libs.contracts.wire_policies import SetWirePolicy
from libs.contracts.wires import SendWire, WireState
from services.payments import approving, expiring
from services.payments.customer_turns import CustomerTurns
from services.payments.effective_policies import EffectivePolicies
from services.payments.policies import Policy
from services.payments.repository import policies, wires
from tests.support.clocks import clock_off_by
from tests.unit.payments.approvals import OPERATOR, events_of, other_key, sent, wire_of
from tests.unit.payments.bench import COMMAND, MINE, Bench
from tests.unit.payments.test_operators_decisions import entries

pytestmark = pytest.mark.usefixtures("a_customer_of_its_own")


async def outcome(drive: Awaitable[Any]) -> str:
    try:
        await drive
    except BanksideError as error:
        return error.code
    return "ok"


async def test_64_wires_at_once_against_a_limit_of_10_are_10(bench: Bench) -> None:
    await bench.set_policy(Policy(daily_count=10, daily_limit=10 * COMMAND.amount))
    sends = [await bench.accepted() for _ in range(64)]
    replicas = [CustomerTurns(), CustomerTurns()]

    outcomes = await asyncio.gather(
        *(
            outcome(bench.send(send, attempt=1, turns=replicas[index % 2]))
            for index, send in enumerate(sends)
        )
    )

    assert Counter(outcomes) == {"ok": 10, "limit_exceeded": 54}
    assert sent(bench) == 10


async def test_wires_that_were_rejected_or_canceled_leave_room(bench: Bench) -> None:
    await bench.set_policy(Policy(daily_limit=COMMAND.amount))
    first = await bench.accepted()
    bench.core.faults["refuse"], bench.core.only = 1, "send_wire"
    assert await outcome(bench.send(first, attempt=1)) == "provider_refused"
    bench.core.faults.clear()

    assert await outcome(bench.send(await bench.accepted(), attempt=1)) == "ok"
    with pytest.raises(LimitExceeded) as refused:
        await bench.send(await bench.accepted(), attempt=1)

    assert refused.value.extra == {
        "limit": "daily_amount",
        "allowed": COMMAND.amount,
        "used": COMMAND.amount,
    }


async def test_the_limits_of_a_day_begin_anew_the_next(bench: Bench) -> None:
    await bench.set_policy(Policy(daily_count=1))
    first = await bench.accepted()
    await bench.send(first, attempt=1)
    async with bench.database.transaction() as connection:
        await connection.execute(
            text(
                "UPDATE wires SET created_at = created_at - interval '1 day' WHERE transaction_id = :id"
            ),
            {"id": first.command_id},
        )

    assert await outcome(bench.send(await bench.accepted(), attempt=1)) == "ok"


async def test_a_daily_count_of_0_means_no_wires(bench: Bench) -> None:
    none_at_all = SetWirePolicy(customer_id=bench.owner.customer_id or "", daily_count=0)
    await bench.set_policy(Policy(daily_count=none_at_all.daily_count))

    with pytest.raises(LimitExceeded) as refused:
        await bench.send(await bench.accepted(), attempt=1)

    assert refused.value.extra == {"limit": "daily_count", "allowed": 0, "used": 0}


async def test_defaults_bind_customers_without_a_policy(bench: Bench) -> None:
    effective = EffectivePolicies(Policy(per_wire_limit=Decimal("9.99")))

    assert (
        await outcome(bench.send(await bench.accepted(), attempt=1, effective=effective))
        == "limit_exceeded"
    )
    await bench.set_policy(Policy())
    assert await outcome(bench.send(await bench.accepted(), attempt=1, effective=effective)) == "ok"


async def test_a_wire_that_waits_is_not_sent_until_another_key_approves_it(bench: Bench) -> None:
    await bench.set_policy(Policy(approval_threshold=COMMAND.amount))
    asked = await bench.accepted()
    answer = await bench.send(asked, attempt=1)
    waiting = await wire_of(bench, asked.command_id)
    assert (answer.message, sent(bench)) == ("Wire waiting for approval", 0)

    assert await outcome(bench.approve(asked.command_id, bench.owner)) == "approver_is_initiator"
    assert await outcome(bench.approve(asked.command_id, MINE)) == "not_found"
    approval = await bench.approve(asked.command_id, other_key(bench, "sub_second"))

    assert approval.message is None
    assert approval.data == answer.data
    assert waiting.state is WireState.PENDING_APPROVAL
    assert waiting.approval_expires_at is not None
    assert waiting.approval_expires_at > datetime.now(UTC)
    approved = await wire_of(bench, asked.command_id)
    assert [(step.state, step.by) for step in approved.history] == [
        (WireState.PENDING_APPROVAL, MINE.subscription_key),
        (WireState.PENDING_SUBMISSION, other_key(bench, "sub_second").subscription_key),
        (WireState.SUBMITTED, None),
    ]
    assert sent(bench) == 1
    assert await events_of(bench, asked.command_id) == [
        "wire.approval_requested",
        "wire.approved",
        "wire.submitted",
    ]


async def test_a_repeated_drive_of_the_request_never_sends_what_waits_or_was_approved(
    bench: Bench,
) -> None:
    await bench.set_policy(Policy(approval_threshold=Decimal(1)))
    asked = await bench.accepted()
    first = await bench.send(asked, attempt=1)

    assert await bench.send(asked, attempt=2) == first
    assert sent(bench) == 0
    await bench.approve(asked.command_id, other_key(bench, "sub_second"))
    assert await bench.send(asked, attempt=3) == first
    assert sent(bench) == 1


async def test_a_new_payee_needs_approval(bench: Bench) -> None:
    await bench.set_policy(Policy(new_payee_hours=1))
    old, new = await bench.accepted(), await bench.accepted()

    await bench.send(old, attempt=1)
    await bench.send(new, attempt=1, linked_at=datetime.now(UTC))

    assert (await bench.found(old)).state is WireState.SUBMITTED
    assert (await bench.found(new)).waits_for_approval


@pytest.mark.parametrize("rival", ["approve", "decline", "cancel", "expire"])
async def test_an_approval_and_its_rival_have_one_outcome(bench: Bench, rival: str) -> None:
    for _ in range(6):
        before = sent(bench)
        transaction_id = await bench.waiting()
        if rival == "expire":
            await expire_soon(bench, transaction_id)
        rivals: dict[str, Awaitable[Any]] = {
            "approve": bench.approve(transaction_id, other_key(bench, "sub_third")),
            "decline": bench.decline(transaction_id, other_key(bench, "sub_third")),
            "cancel": bench.cancel(transaction_id),
            "expire": expiring.expire(bench.database),
        }
        chosen = rivals.pop(rival)
        for unused in rivals.values():
            unused.close()  # type: ignore[attr-defined] # a coroutine

        outcomes = await asyncio.gather(
            outcome(bench.approve(transaction_id, other_key(bench, "sub_second"))), outcome(chosen)
        )

        # An expiry passes over a wire that is just being decided on.
        await expiring.expire(bench.database)
        wire = await wire_of(bench, transaction_id)
        approved = wire.approved_by is not None
        assert sent(bench) - before == approved
        assert wire.state is (WireState.SUBMITTED if approved else WireState.CANCELED)
        if rival != "expire":
            assert Counter(outcomes) == {"ok": 1, "invalid_state": 1}


async def expire_soon(bench: Bench, transaction_id: UUID) -> None:
    async with bench.database.transaction() as connection:
        await connection.execute(
            text(
                "UPDATE wires SET approval_expires_at = clock_timestamp() - interval '1 second'"
                " WHERE transaction_id = :id"
            ),
            {"id": transaction_id},
        )


async def test_what_is_not_decided_on_in_time_is_canceled_and_cannot_be_approved(
    bench: Bench,
) -> None:
    late, early = await bench.waiting(), await bench.waiting()
    await expire_soon(bench, late)

    assert await outcome(bench.approve(late, other_key(bench, "sub_second"))) == "invalid_state"
    assert await expiring.expire(bench.database) == 1

    expired = await wire_of(bench, late)
    assert (expired.state, expired.reason) == (WireState.CANCELED, "approval_expired")
    assert (await wire_of(bench, early)).waits_for_approval
    assert await events_of(bench, late) == ["wire.approval_requested", "wire.canceled"]


async def test_a_wire_expires_once_its_time_is_over_by_the_clock_of_the_process_too(
    bench: Bench,
) -> None:
    transaction_id = await bench.waiting()
    await expire_soon(bench, transaction_id)

    with clock_off_by(-3600):
        while_the_database_is_ahead = await expiring.expire(bench.database)

    assert (while_the_database_is_ahead, await expiring.expire(bench.database)) == (0, 1)


async def test_a_declined_wire_says_who_declined_it_and_why(bench: Bench) -> None:
    transaction_id = await bench.waiting()

    assert await outcome(bench.decline(transaction_id, bench.owner)) == "approver_is_initiator"
    await bench.decline(transaction_id, other_key(bench, "sub_second"))

    last = (await wire_of(bench, transaction_id)).history[-1]
    assert (last.state, last.reason, last.by, last.comment) == (
        WireState.CANCELED,
        "declined",
        "sub_second",
        "Not ours",
    )
    with pytest.raises(InvalidState) as refused:
        await bench.approve(transaction_id, other_key(bench, "sub_second"))
    assert refused.value.extra == {"transaction_id": str(transaction_id)}
    assert sent(bench) == 0


async def test_limits_are_looked_at_again_when_a_wire_is_approved(bench: Bench) -> None:
    transaction_id = await bench.waiting()
    await bench.set_policy(Policy(per_wire_limit=Decimal("9.99")))

    with pytest.raises(LimitExceeded) as refused:
        await bench.approve(transaction_id, other_key(bench, "sub_second"))

    assert refused.value.extra["transaction_id"] == str(transaction_id)
    assert (await wire_of(bench, transaction_id)).waits_for_approval
    await bench.set_policy(Policy(daily_count=1))
    await bench.approve(transaction_id, other_key(bench, "sub_second"))
    assert sent(bench) == 1


async def test_approvals_at_once_against_a_limit_decide_one_after_the_other(bench: Bench) -> None:
    owner = bench.owner
    waiting = [await bench.waiting() for _ in range(2)]
    await bench.set_policy(Policy(daily_count=1))
    async with bench.database.transaction() as connection:
        # Else those that wait would use up the limit of today themselves.
        earlier = (
            "UPDATE wires SET created_at = created_at - interval '2 days' WHERE customer_id = :id"
        )
        await connection.execute(text(earlier), {"id": owner.customer_id})

    async with bench.database.transaction() as connection:
        await policies.lock_limits(connection, owner.tenant, owner.customer_id or "")
        await connection.execute(text("SET LOCAL idle_in_transaction_session_timeout = '30s'"))
        approvals = asyncio.gather(
            *(outcome(bench.approve(one, other_key(bench, "sub_second"))) for one in waiting)
        )
        await bench.are_waiting(2)
    outcomes = await approvals

    assert Counter(outcomes) == {"ok": 1, "limit_exceeded": 1}
    assert sent(bench) == 1


async def test_an_approval_whose_driver_died_is_gone_on_with_and_sends_once(bench: Bench) -> None:
    transaction_id = await bench.waiting()
    second, third = other_key(bench, "sub_second"), other_key(bench, "sub_third")
    approval = await bench.accepted_approval(transaction_id, second)
    bench.core.faults["error"], bench.core.only = 1, "send_wire"
    assert (
        await outcome(bench.approve(transaction_id, second, leased=approval)) == "outcome_pending"
    )
    bench.core.faults.clear()

    assert await outcome(bench.approve(transaction_id, third)) == "invalid_state"
    assert await outcome(bench.cancel(transaction_id)) == "invalid_state"
    await bench.approve(transaction_id, second, leased=approval, attempt=2)

    wire = await wire_of(bench, transaction_id)
    assert wire.state is WireState.SUBMITTED
    assert bench.core.executed == {str(transaction_id): 1}


async def test_an_operator_approves_by_a_command_of_the_service(bench: Bench) -> None:
    transaction_id = await bench.waiting()

    await approving.approve_as_operator(
        bench.database, EffectivePolicies(), OPERATOR, transaction_id, reason="Called the customer"
    )
    wire = await wire_of(bench, transaction_id)
    async with bench.database.transaction() as connection:
        row = (
            await connection.execute(
                text(
                    "SELECT operation, principal, keep_for_ever FROM inbox WHERE command_id = :id"
                ),
                {"id": wire.send_command},
            )
        ).one()

    [approval] = await entries(bench, str(transaction_id))
    assert row.operation == "payments.approve_wire"
    assert approval["command_id"] == str(wire.send_command)
    assert row.keep_for_ever, "as a customer's approval"
    assert msgspec.json.decode(bytes(row.principal), type=Principal).operator == "ada"
    assert (wire.history[-1].by, wire.history[-1].comment) == (
        "operator:ada",
        "Called the customer",
    )
    with pytest.raises(InvalidState):
        await approving.decline_as_operator(
            bench.database, OPERATOR, transaction_id, reason="Too late"
        )
    with pytest.raises(NotFound):
        await approving.decline_as_operator(bench.database, OPERATOR, uuid4(), reason="Whose?")


async def test_a_wire_that_an_operator_approved_is_certainly_unsent_until_its_command_runs(
    bench: Bench,
) -> None:
    transaction_id = await bench.waiting()

    approved = await approving.approve_as_operator(
        bench.database, EffectivePolicies(), OPERATOR, transaction_id, reason="Called the customer"
    )

    assert not approved.is_unknown
    assert not (await wire_of(bench, transaction_id)).is_unknown
    await bench.cancel(transaction_id)
    assert (await wire_of(bench, transaction_id)).state is WireState.CANCELED
    assert sent(bench) == 0


async def test_locks_of_limits_and_wires_are_kept_for_seconds_by_a_process_that_stands_still(
    bench: Bench,
) -> None:
    wire = await bench.wire()
    owner = bench.owner

    async with bench.database.transaction() as connection:
        await policies.lock_limits(connection, owner.tenant, owner.customer_id or "")
        of_limits = await connection.execute(text("SHOW idle_in_transaction_session_timeout"))
    async with bench.database.transaction() as connection:
        await wires.lock(connection, [wire.command_id])
        of_wire = await connection.execute(text("SHOW idle_in_transaction_session_timeout"))

    assert (of_limits.scalar_one(), of_wire.scalar_one()) == ("3s", "3s")


async def test_who_asked_for_a_wire_stands_in_its_history(bench: Bench) -> None:
    plain = await bench.accepted()
    await bench.send(plain, attempt=1, command=SendWire(**COMMAND.model_dump()))

    assert (await bench.found(plain)).initiator == MINE.subscription_key
