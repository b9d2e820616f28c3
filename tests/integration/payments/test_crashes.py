"""`kill -9` in each phase amid a crowd, beside a second replica: the counts are the same.

What each drive makes of a crash at every point is in tests/unit/payments/test_crashes.py, of those of every command in
tests/integration/test_command_driving.py.
"""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import AsyncIterator, Awaitable
from decimal import Decimal
from functools import partial
from typing import Any

import msgspec
import pytest
import pytest_asyncio

from libs.contracts import payments_operations as table
from libs.contracts.errors import BanksideError, InsufficientFunds
from libs.contracts.operation import Operation
from tests.integration.payments.desk import Desk, customer, wire
from tests.support.stack import ServiceProcess
from tests.support.waiting import eventually

pytestmark = pytest.mark.asyncio(loop_scope="session")

FAILED_ONCE = "payments.resumed"
NOT_SENT = "payments.withdrawn"
OF_THE_FEED = "feed.core.after_commit"


def points(*names: str) -> list[str]:
    return [f"payments.{name}" for name in names]


KILLS = {
    "commands and sends": points("accepted", "intended", "called", "recorded", "concluded"),
    "one that failed": [FAILED_ONCE],
    "not sent": [NOT_SENT],
    "feed": [OF_THE_FEED],
}
"""The points at which the first of two replicas dies; tests/faults/test_wires_crashes.py kills one that is alone."""
CROWD, FUNDED = 8, 5
"""Wires at each point, all from one account, and how many of them it has funds for."""


@pytest.mark.parametrize("points", KILLS.values(), ids=KILLS.keys())
async def test_crashes_in_a_crowd_change_no_count(desk: Desk, points: list[str]) -> None:
    accounts = {point: desk.fund(f"acc {point}", Decimal(10 * FUNDED)) for point in points}
    crowds = {point: [str(uuid.uuid4()) for _ in range(CROWD)] for point in points}
    sending: dict[str, asyncio.Task[Any]] = {}
    if FAILED_ONCE in points:
        # Half of the wires are carried out, and nobody gets to know before the replica that crashes took one up again.
        desk.core.faults["error"], desk.core.faults["fail_after_success"] = 0.5, 1.0
    if NOT_SENT in points:
        await desk.bank_down()

    for point in points:
        first = await armed(desk, point)
        if not desk.office.replicas[1].is_running:
            await desk.office.replicas[1].start()
        for one in crowds[point]:
            sending[one] = asyncio.create_task(told(desk, point, one, wait_seconds=6))
        assert await first.ended() == -9, point
        await desk.expire_leases()
    await desk.office.run(2)
    if NOT_SENT in points:
        await desk.bank_up()
    desk.core.heal()
    await desk.expire_leases()
    await desk.due_now()
    early = {one: await answer for one, answer in sending.items()}
    await desk.until_quiet(45)

    final = {one: await told(desk, point, one) for point in points for one in crowds[point]}
    accepted = {one for one in final if isinstance(final[one], dict)}
    refused = {one for one in final if isinstance(final[one], InsufficientFunds)}
    for point, account in accounts.items():
        assert len(accepted.intersection(crowds[point])) == FUNDED, point
        assert account.available == account.lowest == 0
    assert accepted | refused == final.keys()
    assert desk.core.executed == dict.fromkeys(accepted, 1)
    for one, outcome in early.items():
        if isinstance(outcome, dict | InsufficientFunds):
            assert type(outcome) is type(final[one])
    await desk.has_told(accepted, "created", "submitted")
    await desk.has_told(refused, "created", "rejected")


@pytest_asyncio.fixture(loop_scope="session")
async def everything_needs_approval(desk: Desk) -> AsyncIterator[None]:
    await desk.database.execute(
        "INSERT INTO wire_policy (tenant, customer_id, approval_threshold, updated_at)"
        " VALUES ($1, $2, 1, clock_timestamp())",
        customer().tenant,
        customer().customer_id,
    )
    yield
    await desk.database.execute("DELETE FROM wire_policy")


DECISIONS = {
    table.APPROVE_WIRE: points("approved", "called"),
    table.DECLINE_WIRE: points("declined"),
}
DECIDED_TOGETHER = 4


@pytest.mark.parametrize("decision", DECISIONS, ids=["approve", "decline"])
async def test_crashes_amid_decisions_leave_one_outcome_of_each_wire(
    desk: Desk, decision: Operation, everything_needs_approval: None
) -> None:
    """Each wire is decided on by a second key; the replica that dies may have done so, and not said it."""
    account = desk.fund("acc_1", Decimal(10_000))
    second_key = msgspec.structs.replace(customer(), subscription_key="sub_second")
    decided: dict[str, tuple[str, asyncio.Task[Any]]] = {}

    for point in DECISIONS[decision]:
        await desk.office.run(2)
        waiting = [await desk.send() for _ in range(DECIDED_TOGETHER)]
        first = await armed(desk, point)
        for one in waiting:
            transaction_id, command_id = one["transaction_id"], str(uuid.uuid4())
            deciding = desk.decide(
                decision, transaction_id, second_key, command_id=command_id, wait_seconds=6
            )
            decided[transaction_id] = (command_id, asyncio.create_task(outcome(deciding)))
        assert await first.ended() == -9, point
        await desk.expire_leases()
    await desk.office.run(2)
    await desk.expire_leases()
    await desk.due_now()
    early = {one: await answer for one, (_, answer) in decided.items()}
    await desk.until_quiet(45)

    for transaction_id, (command_id, _) in decided.items():
        final = await outcome(
            desk.decide(decision, transaction_id, second_key, command_id=command_id)
        )
        assert final == "ok"
        assert early[transaction_id] in ("ok", "outcome_pending", "idempotency_in_progress")
    if decision is table.APPROVE_WIRE:
        assert desk.core.executed == dict.fromkeys(decided, 1)
        assert account.available == 10_000 - 10 * len(decided)
        await desk.has_told(decided, "approval_requested", "approved", "submitted")
    else:
        assert desk.core.executed == {}
        await desk.has_told(decided, "approval_requested", "canceled")


async def outcome(deciding: Awaitable[Any]) -> str:
    try:
        await deciding
    except BanksideError as error:
        return error.code
    return "ok"


async def armed(desk: Desk, point: str) -> ServiceProcess:
    """The first replica, which will die at the point. Where that is the feed's, it is the one that follows the feed."""
    first, second = desk.office.replicas
    await first.stop()
    if point == OF_THE_FEED:
        if second.is_running:
            await second.stop()
        terms = await feed_terms(desk)
        await first.start(BANKSIDE_CRASH_AT=point)
        await desk.until("it follows the feed", partial(is_followed_since, desk, terms))
        return first
    try:
        await first.start(BANKSIDE_CRASH_AT=point)
    except AssertionError:
        # An earlier wire, taken over, may have led it there before it was ready.
        assert not first.is_running
    return first


async def feed_terms(desk: Desk) -> int:
    """How often a replica became the one that follows the bank's feed."""
    rows = await desk.rows("SELECT term FROM leader_lease WHERE name = 'feed:core'")
    return sum(row["term"] for row in rows)


async def is_followed_since(desk: Desk, terms: int) -> bool:
    return await feed_terms(desk) > terms


async def told(desk: Desk, point: str, transaction_id: str, **options: Any) -> Any:
    command = wire(sending_account_id=f"acc {point}")
    try:
        return await desk.send(command, command_id=transaction_id, **options)
    except BanksideError as error:
        return error


@pytest.mark.parametrize("replicas", [1, 2])
async def test_a_driver_that_is_frozen_until_another_took_over_changes_nothing(
    desk: Desk, replicas: int
) -> None:
    """SIGSTOP while it sends; the bank has got the wire when it wakes up, whoever records that."""
    await desk.office.run(replicas)
    desk.core.gate.clear()
    transaction_id = str(uuid.uuid4())
    sending = asyncio.create_task(desk.send(command_id=transaction_id))

    async def received() -> bool:
        return desk.core.received["send_wire"] >= 1

    await eventually("it is being sent", received)
    with desk.office.frozen(0):
        desk.core.gate.set()
        await desk.expire_leases()
        if replicas == 2:
            await desk.due_now()
            await asyncio.sleep(0.5)  # long enough for the other to drive what it can claim
    sent = await sending

    assert sent["transaction_id"] == transaction_id
    await desk.until_quiet()
    assert desk.core.executed == {transaction_id: 1}
    await desk.has_events(transaction_id, "created", "submitted")
