"""What an operator may decide on, and when."""

from __future__ import annotations

import pytest

from libs.contracts.errors import InvalidState
from libs.contracts.principal import Family, Principal
from libs.contracts.wires import WireReason, WireState
from libs.handling.operating.holding import DECISION_SECONDS
from libs.persistence import inbox, open_commands, parking
from services.payments.models import WireRecord
from services.payments.resolving import resolve_wire
from tests.support.database_life import distrusted
from tests.unit.payments.bench import TRANSIT_SECONDS, Bench

ADA = Principal(
    tenant="", tenant_name="", family=Family.OPERATOR, subscription_key="sub_a", operator="ada"
)
DECISIONS = [WireState.SUBMITTED, WireState.REJECTED]
ARRIVED = TRANSIT_SECONDS + 1
"""The age of a send that arrived, or never will."""


async def resolve(bench: Bench, send: inbox.Leased, decision: WireState) -> WireRecord:
    return await resolve_wire(
        bench.database,
        ADA,
        send.command_id,
        decision,
        reason="By phone.",
        transit_seconds=TRANSIT_SECONDS,
    )


@pytest.mark.parametrize("decision", DECISIONS)
async def test_a_wire_is_not_decided_on_while_its_send_is_driven(
    bench: Bench, decision: WireState
) -> None:
    send = await bench.wire(first_sent_seconds_ago=1)

    with pytest.raises(InvalidState) as refused:
        await resolve(bench, send, decision)

    assert "right now" in refused.value.detail
    assert (await bench.found(send)).is_unknown


@pytest.mark.parametrize("decision", DECISIONS)
async def test_a_wire_whose_send_rests_is_decided_on(bench: Bench, decision: WireState) -> None:
    send = await bench.wire(first_sent_seconds_ago=ARRIVED)
    await bench.let_go(send)

    await resolve(bench, send, decision)

    wire = await bench.found(send)
    assert (wire.state, wire.reason) == (decision, WireReason.DECIDED_BY_OPERATOR)
    assert wire.history[-1].comment == "By phone."


async def test_a_wire_whose_last_send_may_still_arrive_is_submitted_at_once(bench: Bench) -> None:
    send = await bench.wire(first_sent_seconds_ago=1)
    await bench.let_go(send)

    await resolve(bench, send, WireState.SUBMITTED)

    assert (await bench.found(send)).state is WireState.SUBMITTED


async def test_a_wire_whose_last_send_may_still_arrive_is_held_rather_than_rejected(
    bench: Bench,
) -> None:
    send = await bench.wire(first_sent_seconds_ago=TRANSIT_SECONDS - 5)
    await bench.let_go(send, seconds=0)

    with pytest.raises(InvalidState) as refused:
        await resolve(bench, send, WireState.REJECTED)

    assert "may still arrive" in refused.value.detail
    assert (await bench.found(send)).is_unknown
    rests = await bench.rests_for(send)
    assert DECISION_SECONDS < rests < DECISION_SECONDS + TRANSIT_SECONDS
    await bench.date_first_send(send, ARRIVED)
    assert (await resolve(bench, send, WireState.REJECTED)).state is WireState.REJECTED
    assert await bench.rests_for(send) <= 0


async def test_a_send_that_a_restored_database_may_lack_may_still_arrive(bench: Bench) -> None:
    send = await bench.wire(first_sent_seconds_ago=3600)
    await bench.let_go(send)

    async with distrusted(bench.database, lost_seconds=TRANSIT_SECONDS - 5):
        with pytest.raises(InvalidState) as refused:
            await resolve(bench, send, WireState.REJECTED)

    assert "may still arrive" in refused.value.detail


async def test_a_parked_send_stays_parked_when_it_is_held(bench: Bench) -> None:
    send = await bench.wire(first_sent_seconds_ago=1)
    async with inbox.fenced(bench.database, send) as connection:
        await parking.park(connection, send, "Of the test.")
    before = await bench.rests_for(send)

    with pytest.raises(InvalidState):
        await resolve(bench, send, WireState.REJECTED)

    async with bench.database.transaction() as connection:
        found = await open_commands.find(connection, send.command_id)
    assert found is not None
    assert found.parked_because == "Of the test."
    assert await bench.rests_for(send) == pytest.approx(before, abs=60)


async def test_a_wire_of_which_nothing_was_sent_is_not_decided_on(bench: Bench) -> None:
    send = await bench.wire()
    await bench.let_go(send)

    with pytest.raises(InvalidState) as refused:
        await resolve(bench, send, WireState.REJECTED)

    assert "outcome is unknown" in refused.value.detail
