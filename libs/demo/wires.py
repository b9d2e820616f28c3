"""The chapter of the story about a wire."""

from __future__ import annotations

import asyncio
import time
from decimal import Decimal

from libs.contracts.accounts import GetBalance
from libs.contracts.errors import BanksideError
from libs.contracts.wires import GetWire, SendWire, Wire, WireState
from libs.demo.scene import Scene, expect

AMOUNT = Decimal("75.25")
FOLLOW_SECONDS = 30.0
POLL_SECONDS = 0.25


async def send_a_wire(scene: Scene) -> None:
    scene.title("The business pays by wire")
    before = await _total(scene)

    sent = await scene.call(
        scene.customer.send_wire,
        SendWire(
            sending_account_id=scene.facts["account_id"],
            external_account_id=scene.facts["external_account_id"],
            amount=AMOUNT,
            purpose="Nets and buoys",
        ),
    )
    scene.show("wire", sent.data.transaction_id)
    scene.show("amount", f"{sent.data.amount:,.2f} USD")
    wire = await followed(scene, sent.data.transaction_id)

    for step in wire.history:
        scene.show(step.state, f"{step.at:%H:%M:%S}")
    expect(wire.state is WireState.COMPLETED, f"The wire is {wire.state}.")
    total = await _total(scene)
    scene.show("balance", f"{total:,.2f} USD")
    expect(total == before - AMOUNT, f"The balance is not {AMOUNT} less than before.")


async def followed(scene: Scene, transaction_id: str) -> Wire:
    """The wire once nothing more is expected of it, or as it is when that takes too long."""
    command = GetWire(transaction_id=transaction_id)
    give_up_at = time.monotonic() + FOLLOW_SECONDS
    while time.monotonic() < give_up_at:
        try:
            wire = (await scene.customer.get_wire(command)).data
        except BanksideError:
            break  # asked for once more below, where it breaks the story
        if wire.state not in (WireState.PENDING_SUBMISSION, WireState.SUBMITTED):
            break
        await asyncio.sleep(POLL_SECONDS)
    return (await scene.call(scene.customer.get_wire, command)).data


async def _total(scene: Scene) -> Decimal:
    command = GetBalance(account_id=scene.facts["account_id"])
    return (await scene.call(scene.client.get_balance, command)).data.total_balance.amount
