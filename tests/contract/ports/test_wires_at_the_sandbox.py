"""Answers about a wire that only the sandbox gives."""

from __future__ import annotations

from libs.providers.outcomes import Unknown
from tests.contract.ports.test_wires import find, funded_wire, id_of, send
from tests.contract.ports.wire_banks import FakeWireBank


async def test_a_wire_that_cannot_be_read_needs_an_operator(fake_wire_bank: FakeWireBank) -> None:
    wire = await funded_wire(fake_wire_bank)
    await send(fake_wire_bank, wire)
    await fake_wire_bank.forget_key(wire.transaction_id)
    fake_wire_bank.fake.wires[str(wire.transaction_id)]["amount"] = "much"

    found = await find(fake_wire_bank, wire)

    assert isinstance(found, Unknown)
    assert found.needs_operator


async def test_a_stored_answer_of_an_earlier_release_is_told_by_its_id(
    fake_wire_bank: FakeWireBank,
) -> None:
    wire = await funded_wire(fake_wire_bank)
    await send(fake_wire_bank, wire)
    key = str(wire.transaction_id)
    sent, _ = fake_wire_bank.fake.keys[key]
    fake_wire_bank.fake.keys[key] = sent, (200, {"transaction_id": key, "state": "submitted"})

    found = await find(fake_wire_bank, wire)

    assert id_of(found) == key
