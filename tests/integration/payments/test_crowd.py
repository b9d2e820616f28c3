"""Many at once on one account: what the bank has funds for, and not one more."""

from __future__ import annotations

import asyncio
import uuid
from collections import Counter
from decimal import Decimal

import pytest

from libs.contracts.errors import BanksideError, IdempotencyInProgress, Unavailable
from tests.integration.payments.desk import Desk, wire

pytestmark = pytest.mark.asyncio(loop_scope="session")

CROWD, FUNDED = 250, 150


async def test_no_more_wires_at_once_are_carried_out_than_there_are_funds_for(desk: Desk) -> None:
    await desk.office.run(2)
    account = desk.fund("acc_crowd", FUNDED * Decimal("10.00"))
    command = wire(sending_account_id="acc_crowd")

    async def send() -> str:
        try:
            return str((await desk.send(command, wait_seconds=60))["transaction_id"])
        except Unavailable:  # nothing was begun: whoever knows the owners was too busy
            return await send()
        except BanksideError as error:
            return error.code

    outcomes = await asyncio.gather(*(send() for _ in range(CROWD)))

    accepted = [outcome for outcome in outcomes if outcome in desk.core.wires]
    refused = Counter(outcome for outcome in outcomes if outcome not in desk.core.wires)
    assert refused == {"insufficient_funds": CROWD - FUNDED}
    assert desk.core.executed == dict.fromkeys(accepted, 1)
    assert len(accepted) == FUNDED
    assert account.held == FUNDED * Decimal("10.00")
    assert account.available == account.lowest == 0
    await desk.until_quiet()
    counted = await desk.rows(
        "SELECT state, count(*) AS n, sum(sequence) AS steps FROM wires"
        " WHERE sending_account_id = 'acc_crowd' AND created_at > $1 GROUP BY state",
        desk.began,
    )
    assert {row["state"]: (row["n"], row["steps"]) for row in counted} == {
        "submitted": (FUNDED, 2 * FUNDED),
        "rejected": (CROWD - FUNDED, 2 * (CROWD - FUNDED)),
    }


async def test_one_command_from_fifty_clients_is_one_wire(desk: Desk) -> None:
    transaction_id = str(uuid.uuid4())

    async def send() -> str:
        try:
            return str((await desk.send(command_id=transaction_id))["transaction_id"])
        except IdempotencyInProgress as error:
            return error.code

    outcomes = set(await asyncio.gather(*(send() for _ in range(50))))

    assert outcomes <= {transaction_id, "idempotency_in_progress"}
    assert transaction_id in outcomes
    assert desk.core.executed == {transaction_id: 1}
    await desk.has_events(transaction_id, "created", "submitted")
