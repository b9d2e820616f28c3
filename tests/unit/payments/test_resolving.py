"""What an operator may decide on, and when."""

from __future__ import annotations

import pytest

from libs.contracts.errors import InvalidState
from libs.contracts.principal import Family, Principal
from libs.contracts.wires import WireReason, WireState
from services.payments.resolving import resolve_wire
from tests.unit.payments.bench import Bench

ADA = Principal(
    tenant="", tenant_name="", family=Family.OPERATOR, subscription_key="sub_a", operator="ada"
)
DECISIONS = [WireState.SUBMITTED, WireState.REJECTED]


@pytest.mark.parametrize("decision", DECISIONS)
async def test_a_wire_is_not_decided_on_while_its_send_is_driven(
    bench: Bench, decision: WireState
) -> None:
    send = await bench.wire(first_sent_seconds_ago=1)

    with pytest.raises(InvalidState) as refused:
        await resolve_wire(bench.database, ADA, send.command_id, decision, reason="By phone.")

    assert "right now" in refused.value.detail
    assert (await bench.found(send)).is_unknown


@pytest.mark.parametrize("decision", DECISIONS)
async def test_a_wire_whose_send_rests_is_decided_on(bench: Bench, decision: WireState) -> None:
    send = await bench.wire(first_sent_seconds_ago=1)
    await bench.let_go(send)

    await resolve_wire(bench.database, ADA, send.command_id, decision, reason="By phone.")

    wire = await bench.found(send)
    assert (wire.state, wire.reason) == (decision, WireReason.DECIDED_BY_OPERATOR)
    assert wire.history[-1].comment == "By phone."


async def test_a_wire_of_which_nothing_was_sent_is_not_decided_on(bench: Bench) -> None:
    send = await bench.wire()
    await bench.let_go(send)

    with pytest.raises(InvalidState) as refused:
        await resolve_wire(
            bench.database, ADA, send.command_id, WireState.REJECTED, reason="By phone."
        )

    assert "outcome is unknown" in refused.value.detail
