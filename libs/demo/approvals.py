"""The chapter of the story about a wire that needs a second pair of eyes."""

from __future__ import annotations

from decimal import Decimal

from libs.contracts.errors import ApproverIsInitiator
from libs.contracts.wire_policies import GetWirePolicy, SetWirePolicy
from libs.contracts.wires import ApproveWire, GetWire, SendWire, WireState
from libs.demo.ledger import customer_credentials
from libs.demo.scene import Scene, expect
from libs.demo.wires import followed

THRESHOLD = Decimal("100.00")
AMOUNT = Decimal("140.00")


async def approve_a_wire(scene: Scene) -> None:
    scene.title("A larger wire needs a second pair of eyes")
    customer_id = scene.facts["customer_id"]
    before = await scene.call(scene.client.get_wire_policy, GetWirePolicy(customer_id=customer_id))
    await scene.call(
        scene.client.set_wire_policy,
        SetWirePolicy(customer_id=customer_id, approval_threshold=THRESHOLD),
    )
    scene.show("approval from", f"{THRESHOLD:,.2f} USD")

    asked = await scene.call(
        scene.customer.send_wire,
        SendWire(
            sending_account_id=scene.facts["account_id"],
            external_account_id=scene.facts["external_account_id"],
            amount=AMOUNT,
            purpose="A new mast",
        ),
    )
    transaction_id = asked.data.transaction_id
    scene.show("wire", transaction_id)
    scene.show("answer", asked.message)
    waiting = (await scene.customer.get_wire(GetWire(transaction_id=transaction_id))).data
    expect(waiting.state is WireState.PENDING_APPROVAL, f"The wire is {waiting.state}.")
    command = ApproveWire(transaction_id=transaction_id)
    await scene.refused(scene.customer.approve_wire, command, ApproverIsInitiator)
    second = scene.client_of(await customer_credentials(customer_id))
    await scene.call(second.approve_wire, command)

    wire = await followed(scene, transaction_id)
    for step in wire.history:
        scene.show(step.state, f"{step.at:%H:%M:%S}  {step.by or ''}".rstrip())
    expect(wire.state is WireState.COMPLETED, f"The wire is {wire.state}.")
    # The examples of the documents send wires of this customer, which are not to wait for approval.
    await scene.call(
        scene.client.set_wire_policy,
        SetWirePolicy.model_validate(before.data.model_dump(exclude={"updated_at"})),
    )
    threshold = before.data.approval_threshold
    scene.show("approval from", "none" if threshold is None else f"{threshold:,.2f} USD")
