"""Cancellations against sends, one step of each at a time."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from libs.contracts.errors import InvalidState, NotFound, OutcomePending
from libs.contracts.principal import Principal
from libs.contracts.wires import WireState
from services.payments.repository import sends, wires
from tests.unit.payments.bench import STRANGERS, Bench


async def test_of_a_send_and_a_cancellation_behind_it_the_send_has_its_way(bench: Bench) -> None:
    send = await bench.wire()
    async with bench.locked(send):
        sending = asyncio.create_task(bench.send(send))
        await bench.are_waiting(1)
        canceling = asyncio.create_task(bench.cancel(send.command_id))
        await bench.are_waiting(2)

    sent, canceled = await asyncio.gather(sending, canceling, return_exceptions=True)

    assert isinstance(canceled, InvalidState), canceled
    assert canceled.extra == {"transaction_id": str(send.command_id)}
    assert not isinstance(sent, BaseException), sent
    assert bench.core.executed == {str(send.command_id): 1}
    assert (await bench.found(send)).state is WireState.SUBMITTED


async def test_of_a_cancellation_and_a_send_behind_it_the_cancellation_has_its_way(
    bench: Bench,
) -> None:
    send = await bench.wire()
    async with bench.locked(send):
        canceling = asyncio.create_task(bench.cancel(send.command_id))
        await bench.are_waiting(1)
        sending = asyncio.create_task(bench.send(send))
        await bench.are_waiting(2)

    sent, canceled = await asyncio.gather(sending, canceling, return_exceptions=True)

    assert not isinstance(canceled, BaseException), canceled
    assert isinstance(sent, InvalidState), sent
    assert not bench.core.received["send_wire"]
    wire = await bench.found(send)
    assert (wire.state, wire.send_age_seconds) == (WireState.CANCELED, None)


async def test_a_cancellation_during_which_the_send_begins_and_ends_finds_the_wire(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whichever of its two looks comes first, between them the send goes all the way."""
    send = await bench.accepted()
    looks = 0

    async def before_second_look() -> None:
        nonlocal looks
        looks += 1
        if looks == 2:
            await bench.send(send, attempt=1)
            await bench.finish(send)

    def watched(look: Any) -> Any:
        async def looking(*arguments: Any, **options: Any) -> Any:
            await before_second_look()
            return await look(*arguments, **options)

        return looking

    monkeypatch.setattr(sends, "is_open", watched(sends.is_open))
    monkeypatch.setattr(wires, "find", watched(wires.find))

    with pytest.raises(InvalidState):
        await bench.cancel(send.command_id)

    assert looks == 2
    assert bench.core.executed == {str(send.command_id): 1}


async def test_a_send_that_is_no_wire_yet_is_waited_for_by_its_own_customer_alone(
    bench: Bench,
) -> None:
    send = await bench.accepted()

    with pytest.raises(OutcomePending):
        await bench.cancel(send.command_id)


@pytest.mark.parametrize("stranger", STRANGERS, ids=["another customer", "another tenant"])
async def test_a_send_of_another_customer_that_is_no_wire_yet_does_not_exist(
    bench: Bench, stranger: Principal
) -> None:
    send = await bench.accepted()

    with pytest.raises(NotFound):
        await bench.cancel(send.command_id, stranger)
