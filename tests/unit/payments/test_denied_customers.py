"""No wire of a customer that is denied begins, and what had begun goes on."""

from __future__ import annotations

from uuid import uuid4

import msgspec
import pytest

from libs.contracts.errors import (
    InvalidState,
    NotFound,
    OutcomePending,
)
from libs.contracts.wires import WireState
from services.payments.repository import wires
from tests.support.database_life import distrusted
from tests.unit.payments.approvals import other_key, sent, wire_of
from tests.unit.payments.bench import Bench

pytestmark = pytest.mark.usefixtures("a_customer_of_its_own")


async def test_a_wire_of_a_denied_customer_is_refused_and_there_is_none(bench: Bench) -> None:
    bench.is_denied = True
    asked = await bench.accepted()

    with pytest.raises(InvalidState):
        await bench.send(asked, attempt=1)

    async with bench.database.transaction() as connection:
        assert await wires.find_any(connection, asked.command_id) is None
    assert sent(bench) == 0


async def test_a_wire_whose_send_had_begun_before_its_customer_was_denied_goes_on(
    bench: Bench,
) -> None:
    begun = await bench.wire(first_sent_seconds_ago=1)
    bench.is_denied = True

    await bench.send(begun, attempt=2)

    assert (await bench.found(begun)).state is WireState.SUBMITTED


async def test_no_key_approves_a_wire_of_a_denied_customer(bench: Bench) -> None:
    transaction_id = await bench.waiting()
    bench.is_denied = True

    with pytest.raises(InvalidState) as refused:
        await bench.approve(transaction_id, other_key(bench, "sub_second"))

    assert refused.value.extra["transaction_id"] == str(transaction_id)
    assert (await wire_of(bench, transaction_id)).waits_for_approval
    assert sent(bench) == 0


async def test_an_approval_for_a_denied_customer_of_a_wire_that_it_does_not_have_is_not_found(
    bench: Bench,
) -> None:
    transaction_id = await bench.waiting()
    stranger = msgspec.structs.replace(other_key(bench, "sub_stranger"), customer_id=str(uuid4()))
    bench.is_denied = True

    with pytest.raises(NotFound):
        await bench.approve(uuid4(), other_key(bench, "sub_second"))
    with pytest.raises(NotFound):
        await bench.approve(transaction_id, stranger)


async def test_an_approval_that_was_recorded_before_the_denial_goes_on(bench: Bench) -> None:
    transaction_id = await bench.waiting()
    second = other_key(bench, "sub_second")
    approval = await bench.accepted_approval(transaction_id, second)
    bench.core.faults["accept_then_drop"] = 1
    with pytest.raises(OutcomePending):
        await bench.approve(transaction_id, second, leased=approval)
    bench.core.heal()
    bench.is_denied = True

    await bench.approve(transaction_id, second, leased=approval, attempt=2)

    assert (await wire_of(bench, transaction_id)).state is WireState.SUBMITTED


async def test_a_refusal_of_a_denied_customer_waits_while_an_approval_may_be_lost(
    bench: Bench,
) -> None:
    transaction_id = await bench.waiting()
    bench.is_denied = True

    async with distrusted(bench.database):
        with pytest.raises(OutcomePending):
            await bench.approve(transaction_id, other_key(bench, "sub_second"))
        with pytest.raises(OutcomePending):
            await bench.approve(uuid4(), other_key(bench, "sub_second"))
        with pytest.raises(OutcomePending):
            await bench.send(await bench.accepted(), attempt=1)
