"""Queries about wires whose command is accepted and whose record is not yet made."""

from __future__ import annotations

import time
import uuid

import pytest

from libs.contracts.errors import NotFound, Unavailable
from libs.contracts.principal import Principal
from libs.contracts.wires import GetWire, Wire
from services.payments.handlers.queries import Queries
from services.payments.repository import sends
from tests.unit.payments.bench import MINE, STRANGERS, Bench


async def found(bench: Bench, transaction_id: uuid.UUID, principal: Principal = MINE) -> Wire:
    command = GetWire(transaction_id=str(transaction_id))
    result = await Queries(bench.database).get_wire(principal, command, time.time() + 10)
    assert isinstance(result.data, Wire)
    return result.data


async def test_a_wire_that_is_accepted_and_not_recorded_yet_is_not_said_to_be_unknown(
    bench: Bench,
) -> None:
    send = await bench.accepted()

    with pytest.raises(Unavailable) as before:
        await found(bench, send.command_id)
    await bench.send(send, attempt=1)

    assert "not recorded yet" in before.value.detail
    assert (await found(bench, send.command_id)).transaction_id == str(send.command_id)


@pytest.mark.parametrize("stranger", STRANGERS, ids=["another customer", "another tenant"])
async def test_a_wire_of_another_customer_that_is_not_recorded_yet_does_not_exist(
    bench: Bench, stranger: Principal
) -> None:
    send = await bench.accepted()

    with pytest.raises(NotFound):
        await found(bench, send.command_id, stranger)


async def test_a_wire_that_is_recorded_and_sent_while_it_is_looked_for_is_found(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    send = await bench.accepted()
    is_open = sends.is_open

    async def is_open_after_the_send(*arguments: object) -> bool:
        await bench.send(send, attempt=1)
        await bench.finish(send)
        return await is_open(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(sends, "is_open", is_open_after_the_send)

    wire = await found(bench, send.command_id)

    assert wire.transaction_id == str(send.command_id)
