"""A wire can be taken back while certainly nothing was sent, and only then."""

from __future__ import annotations

import asyncio
import uuid
from functools import partial
from typing import Any

import pytest

from libs.contracts.errors import InvalidState, OutcomePending, Unavailable
from tests.integration.payments.desk import Desk
from tests.support.waiting import eventually

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def waiting_for_the_bank(desk: Desk) -> str:
    """A wire that could not be sent, since the bank is down."""
    transaction_id = str(uuid.uuid4())
    with pytest.raises(OutcomePending):
        await desk.send(command_id=transaction_id, wait_seconds=4)
    await desk.until("nothing was sent", partial(is_wire, desk, transaction_id, "IS NULL"))
    return transaction_id


async def canceled_between_sends(desk: Desk, transaction_id: str) -> Any:
    """A drive that tries to reach the bank has noted a send for as long as that takes."""

    async def canceled() -> Any:
        try:
            return await desk.cancel(transaction_id)
        except InvalidState:
            return None

    return await eventually("it is canceled", canceled)


async def is_wire(desk: Desk, transaction_id: str, send_begun: str) -> bool:
    """Whether it is recorded, with a first send that is so (SQL)."""
    return bool(
        await desk.rows(
            f"SELECT 1 FROM wires WHERE transaction_id = $1 AND send_begun_at {send_begun}",
            uuid.UUID(transaction_id),
        )
    )


async def test_a_wire_that_was_not_sent_is_canceled_and_never_sent(desk: Desk) -> None:
    await desk.bank_down()
    transaction_id = await waiting_for_the_bank(desk)

    canceled = await canceled_between_sends(desk, transaction_id)
    await desk.bank_up()

    assert canceled["state"] == "canceled"
    await desk.until_quiet()
    with pytest.raises(InvalidState):
        await desk.send(command_id=transaction_id)
    with pytest.raises(InvalidState):
        await desk.cancel(transaction_id)
    assert not desk.core.received["send_wire"]
    await desk.has_events(transaction_id, "created", "canceled")


async def test_a_wire_that_was_not_sent_is_sent_once_the_bank_is_there(desk: Desk) -> None:
    await desk.bank_down()
    transaction_id = await waiting_for_the_bank(desk)
    await desk.bank_up()

    await desk.has_state(transaction_id, "submitted", 40)

    assert desk.core.executed == {transaction_id: 1}
    assert not desk.core.received["get_operation"], "there was no earlier send to ask about"


async def test_a_wire_that_was_accepted_is_not_canceled(desk: Desk) -> None:
    transaction_id = (await desk.send())["transaction_id"]

    with pytest.raises(InvalidState):
        await desk.cancel(transaction_id)


async def test_a_wire_whose_outcome_is_unknown_is_not_canceled(desk: Desk) -> None:
    desk.core.faults["error"] = 1
    transaction_id = str(uuid.uuid4())
    with pytest.raises(OutcomePending):
        await desk.send(command_id=transaction_id, wait_seconds=4)
    await desk.until("it was sent", partial(is_wire, desk, transaction_id, "IS NOT NULL"))

    with pytest.raises(InvalidState):
        await desk.cancel(transaction_id)


async def test_a_cancellation_that_comes_before_the_wire_is_a_wire_waits_for_it(desk: Desk) -> None:
    await desk.office.replicas[0].stop()
    await desk.office.run(1)  # whose memory of owners is empty
    await desk.onboarding_down()
    transaction_id = str(uuid.uuid4())
    # Its caller is told at once that it is pending, so that it is kept while onboarding is away.
    with pytest.raises(OutcomePending):
        await desk.send(command_id=transaction_id, wait_seconds=0.5)
    canceling = asyncio.create_task(desk.cancel(transaction_id))
    with pytest.raises(Unavailable):
        await desk.get(transaction_id)
    await desk.onboarding_up()

    with pytest.raises(InvalidState):  # rather than 404, after which it would have been sent
        await canceling

    await desk.has_state(transaction_id, "submitted")
    # A send of the test before, whose outcome was not known, may have reached this bank as well.
    assert desk.core.executed[transaction_id] == 1


async def test_of_a_send_and_a_cancellation_at_once_exactly_one_has_its_way(desk: Desk) -> None:
    await desk.bank_down()
    ids = [await waiting_for_the_bank(desk)]
    more = [str(uuid.uuid4()) for _ in range(19)]
    await asyncio.gather(
        *(desk.send(command_id=one, wait_seconds=4) for one in more), return_exceptions=True
    )
    ids += more
    await desk.bank_up()
    await asyncio.sleep(0.3)  # the bank's circuit opens for probes after this
    await desk.due_now()

    outcomes = await asyncio.gather(*(desk.cancel(one) for one in ids), return_exceptions=True)
    await desk.until_quiet(60)

    canceled = {one for one, told in zip(ids, outcomes, strict=True) if isinstance(told, dict)}
    refused = [told for told in outcomes if not isinstance(told, dict)]
    assert all(isinstance(told, InvalidState) for told in refused), refused
    assert desk.core.executed == dict.fromkeys(set(ids) - canceled, 1)
    for one in ids:
        expected = "canceled" if one in canceled else "submitted"
        assert (await desk.get(one))["state"] == expected


async def test_a_kill_while_canceling_cancels_once(desk: Desk) -> None:
    await desk.bank_down()
    transaction_id = await waiting_for_the_bank(desk)
    service = desk.office.replicas[0]
    # Before the update: a drive that is under way says anew when the command is due.
    await service.stop()
    await desk.database.execute("UPDATE inbox SET due_at = now() + interval '1 hour'")
    await service.start(BANKSIDE_CRASH_AT="payments.canceled")
    canceling = asyncio.create_task(desk.cancel(transaction_id))
    ended = await service.ended()
    await desk.expire_leases()
    await desk.office.run(1)

    canceled = await canceling

    assert ended == -9
    assert canceled["state"] == "canceled"
    await desk.bank_up()
    await desk.until_quiet()
    assert not desk.core.received["send_wire"]
    await desk.has_events(transaction_id, "created", "canceled")
