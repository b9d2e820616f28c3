"""`bankside wires`: what an operator sees, and what is done about a wire of which the bank tells nothing."""

from __future__ import annotations

import uuid
from functools import partial
from typing import Any

import pytest
import pytest_asyncio

from libs.contracts.errors import OutcomePending, ProviderRefused
from libs.handling.operating.serving import operating_handlers
from services.payments.abandoning import why_not_abandoned
from tests.integration.payments.desk import C_1, Desk
from tests.support.answered_operators import AnsweredOperators
from tests.support.waits import last_send_arrives

pytestmark = pytest.mark.asyncio(loop_scope="session")


def of_commands(desk: Desk) -> AnsweredOperators:
    """The command line for what needs no gateway here."""
    of_payments = partial(operating_handlers, "payments", why_not_abandoned=why_not_abandoned)
    return AnsweredOperators(desk.office.environment, {"payments": of_payments})


@pytest_asyncio.fixture(autouse=True, loop_scope="session")
async def _gateway(desk: Desk) -> None:
    """The command line asks the gateway."""
    await desk.office.gateway()


async def unknown_wire(desk: Desk) -> str:
    transaction_id = str(uuid.uuid4())
    desk.core.faults["error"] = 1
    with pytest.raises(OutcomePending):
        await desk.send(command_id=transaction_id, wait_seconds=4)

    async def is_unknown() -> bool:
        """Its sender is told so at a fixed time, which may be before the drive has come so far."""
        return bool(
            await desk.rows(
                "SELECT 1 FROM inbox JOIN wires ON transaction_id = command_id"
                " WHERE command_id = $1 AND last_error = 'outcome_pending' AND send_begun_at IS NOT NULL",
                uuid.UUID(transaction_id),
            )
        )

    await desk.until("it was sent, and its outcome is unknown", is_unknown)
    return transaction_id


async def decided(desk: Desk, transaction_id: str, *arguments: str) -> Any:
    """A decision is refused while the bank is being asked, so it may have to be given again."""

    async def given() -> Any:
        await last_send_arrives(desk.office.environment, "payments", transaction_id)
        try:
            return await desk.office.stack.command(
                "wires", "resolve", transaction_id, *arguments, "--yes"
            )
        except AssertionError as error:
            if "right now" not in str(error) and "may still arrive" not in str(error):
                raise
            return None

    return await desk.until("it is decided on", given)


async def test_a_wire_whose_outcome_is_unknown_is_listed_and_shown(desk: Desk) -> None:
    known = (await desk.send())["transaction_id"]
    transaction_id = await unknown_wire(desk)
    stack = desk.office.stack

    unknown = await stack.command("wires", "list", "--unknown", "--limit", "1000")
    pending = await stack.command("wires", "list", "--state", "pending_submission")
    shown = await stack.command("wires", "show", transaction_id)

    listed = [row["transaction_id"] for row in unknown["wires"]]
    assert transaction_id in listed
    assert known not in listed
    assert pending["wires"]
    assert (shown["tenant"], shown["customer_id"]) == ("t_1", C_1)
    assert shown["outcome_unknown"]
    assert shown["send"]["last_error"] == "outcome_pending"
    assert [step["state"] for step in shown["history"]] == ["pending_submission"]


async def test_resolving_has_the_bank_asked_at_once(desk: Desk) -> None:
    transaction_id = await unknown_wire(desk)
    await desk.until("it is no more driven", partial(desk.rests, transaction_id))
    desk.core.heal()

    await desk.office.stack.command("wires", "resolve", transaction_id, "--yes")

    await desk.has_state(transaction_id, "submitted")
    assert desk.core.executed == {transaction_id: 1}


@pytest.mark.parametrize("decision", ["submitted", "rejected"])
async def test_a_decision_ends_the_send_and_stays_in_the_history(desk: Desk, decision: str) -> None:
    transaction_id = await unknown_wire(desk)

    wire = await decided(
        desk, transaction_id, "--as", decision, "--reason", "The bank said so by phone."
    )

    assert (wire["state"], wire["reason"]) == (decision, "decided_by_operator")
    assert wire["history"][-1]["comment"] == "The bank said so by phone."
    await desk.until_quiet()
    if decision == "submitted":
        assert (await desk.send(command_id=transaction_id))["transaction_id"] == transaction_id
    else:
        with pytest.raises(ProviderRefused):
            await desk.send(command_id=transaction_id)
    await desk.has_events(transaction_id, "created", decision)


async def test_what_is_known_cannot_be_decided_on(desk: Desk) -> None:
    transaction_id = (await desk.send())["transaction_id"]
    stack = desk.office.stack

    for arguments, why in (
        (
            ("resolve", transaction_id, "--as", "rejected", "--reason", "x", "--yes"),
            "has its answer",
        ),
        (("resolve", transaction_id, "--as", "rejected", "--yes"), "go together"),
        (("resolve", transaction_id), "give --yes"),
        (("show", str(uuid.uuid4())), "There is no wire"),
    ):
        with pytest.raises(AssertionError, match=why):
            await stack.command("wires", *arguments)
    assert (await desk.get(transaction_id))["state"] == "submitted"


async def parked(desk: Desk, transaction_id: str) -> None:
    """Park the send, as a process that drives it would."""

    async def is_parked() -> bool:
        changed = await desk.database.execute(
            "UPDATE inbox SET parked_at = now(), parked_because = 'Of the test.'"
            " WHERE command_id = $1 AND lease IS NULL AND finished_at IS NULL",
            uuid.UUID(transaction_id),
        )
        return bool(changed == "UPDATE 1")

    await desk.until("it is parked", is_parked)


async def test_a_parked_send_is_shown_and_cannot_be_abandoned_while_its_wire_is_unknown(
    desk: Desk,
) -> None:
    transaction_id = await unknown_wire(desk)
    await parked(desk, transaction_id)
    stack = desk.office.stack

    shown = await stack.command("wires", "show", transaction_id)
    with pytest.raises(AssertionError, match="bankside wires resolve"):
        await of_commands(desk).command(
            *("commands", "abandon", transaction_id, "--reason", "x", "--yes")
        )

    assert shown["send"]["parked_because"] == "Of the test."
    assert shown["send"]["next_attempt_at"] is None
    (row,) = await desk.rows(
        "SELECT finished_at FROM inbox WHERE command_id = $1", uuid.UUID(transaction_id)
    )
    assert row["finished_at"] is None


async def test_a_parked_send_of_a_wire_that_is_pending_and_unsent_cannot_be_abandoned(
    desk: Desk,
) -> None:
    transaction_id = str(uuid.uuid4())
    await desk.bank_down()
    with pytest.raises(OutcomePending):
        await desk.send(command_id=transaction_id, wait_seconds=4)
    await desk.until("its send is withdrawn", lambda: _withdrawn(desk, transaction_id))
    await parked(desk, transaction_id)

    with pytest.raises(AssertionError, match="retry it, or have its customer cancel"):
        await of_commands(desk).command(
            *("commands", "abandon", transaction_id, "--reason", "x", "--yes")
        )

    await desk.bank_up()
    await of_commands(desk).command("commands", "retry", transaction_id, "--reason", "x")
    await desk.has_state(transaction_id, "submitted")
    assert desk.core.executed == {transaction_id: 1}


async def _withdrawn(desk: Desk, transaction_id: str) -> bool:
    found = await desk.rows(
        "SELECT 1 FROM wires WHERE transaction_id = $1 AND send_begun_at IS NULL",
        uuid.UUID(transaction_id),
    )
    return bool(found)


async def test_a_decision_on_the_wire_of_a_parked_send_ends_it(desk: Desk) -> None:
    transaction_id = await unknown_wire(desk)
    await parked(desk, transaction_id)

    await decided(desk, transaction_id, "--as", "submitted", "--reason", "The bank said so.")

    await desk.until_quiet()
    assert (await desk.send(command_id=transaction_id))["transaction_id"] == transaction_id


async def test_an_unsent_wire_is_canceled_and_is_then_neither_approved_nor_declined(
    desk: Desk,
) -> None:
    transaction_id = str(uuid.uuid4())
    await desk.bank_down()
    with pytest.raises(OutcomePending):
        await desk.send(command_id=transaction_id, wait_seconds=4)
    stack, why = desk.office.stack, ("--reason", "Its customer asked by telephone.", "--yes")

    canceled = await desk.until(
        "none of its sends, of which each is withdrawn, is under way",
        lambda: stack.command("wires", "cancel", transaction_id, *why),
    )
    for decision in ("approve", "decline"):
        with pytest.raises(AssertionError, match="canceled"):
            await stack.command("wires", decision, transaction_id, *why)

    assert (canceled["state"], canceled["reason"]) == ("canceled", "canceled_by_operator")
    assert canceled["history"][-1]["comment"] == why[1]
    await desk.bank_up()
    await desk.until_quiet()
    assert not desk.core.executed
