"""What operators decide about wires, by the handlers of their operations."""

from __future__ import annotations

import json
import uuid
from collections.abc import Awaitable
from decimal import Decimal
from typing import Any

import msgspec
import pytest
from sqlalchemy import text

from libs.contracts.errors import BanksideError, InvalidState, NotFound, Unavailable
from libs.contracts.operating import wires as contract
from libs.contracts.wires import WireReason, WireState
from tests.unit.payments.bench import COMMAND, MINE, TRANSIT_SECONDS, Bench
from tests.unit.payments.test_operating import ADA, operating, soon


async def resolve(bench: Bench, transaction_id: str, decision: str) -> contract.OperatorWire:
    command = contract.ResolveWire.model_validate(
        {"transaction_id": transaction_id, "as": decision, "reason": "By telephone."}
    )
    result = await operating(bench).resolve_wire(ADA, command, soon())
    assert isinstance(result.data, contract.OperatorWire)
    return result.data


async def cancel(bench: Bench, transaction_id: str) -> contract.OperatorWire:
    command = contract.OperatorCancelWire(transaction_id=transaction_id, reason="By telephone.")
    result = await operating(bench).cancel_wire(ADA, command, soon())
    assert isinstance(result.data, contract.OperatorWire)
    return result.data


async def entries(bench: Bench, transaction_id: str) -> list[dict[str, Any]]:
    """What the audit has about the wire."""
    async with bench.database.transaction() as connection:
        rows = await connection.execute(text("SELECT entry FROM audit ORDER BY day, number"))
        read = [json.loads(row.entry) for row in rows]
    return [entry for entry in read if entry.get("transaction_id") == transaction_id]


async def test_a_decision_is_audited_under_the_operators_name(bench: Bench) -> None:
    send = await bench.wire(first_sent_seconds_ago=2 * TRANSIT_SECONDS)
    await bench.let_go(send)
    transaction_id = str(send.command_id)

    asked = await resolve(bench, transaction_id, "ask")
    wire = await resolve(bench, transaction_id, "rejected")

    assert asked.outcome_unknown
    assert (wire.state, wire.reason) == (WireState.REJECTED, WireReason.DECIDED_BY_OPERATOR)
    assert wire.history[-1].comment == "By telephone."
    first, second = await entries(bench, transaction_id)
    assert (first["action"], first.get("decision")) == ("wires.resolve", None)
    assert second["decision"] == "rejected"
    assert second["actor"] == "operator:ada"
    assert (second["address"], second["request_id"]) == ("203.0.113.7", "req-1")
    assert second["reason"] == "By telephone."


@pytest.mark.parametrize("at_bank", ["submitted", "completed", "returned"])
async def test_what_the_bank_carried_out_is_not_rejected(bench: Bench, at_bank: str) -> None:
    """The operator may have looked at the bank before the send that it took."""
    send = await bench.wire(first_sent_seconds_ago=2 * TRANSIT_SECONDS)
    await bench.let_go(send)
    transaction_id = str(send.command_id)
    bench.core.carry_out_before(transaction_id, COMMAND)
    bench.core.become(at_bank, transaction_id)

    with pytest.raises(InvalidState) as refused:
        await resolve(bench, transaction_id, "rejected")

    assert refused.value.detail.startswith(f"The bank has the wire as {at_bank}.")
    assert (await bench.found(send)).is_unknown
    assert await entries(bench, transaction_id) == []


@pytest.mark.parametrize(
    ("amount", "at_bank"),
    [(COMMAND.amount, "rejected"), (COMMAND.amount, "in_review"), (Decimal(9), "submitted")],
    ids=["refused there", "a word that is not known here", "another wire"],
)
async def test_what_the_bank_does_not_show_as_carried_out_can_be_rejected(
    bench: Bench, amount: Decimal, at_bank: str
) -> None:
    send = await bench.wire(first_sent_seconds_ago=2 * TRANSIT_SECONDS)
    await bench.let_go(send)
    transaction_id = str(send.command_id)
    bench.core.carry_out_before(transaction_id, COMMAND.model_copy(update={"amount": amount}))
    bench.core.become(at_bank, transaction_id)

    wire = await resolve(bench, transaction_id, "rejected")

    assert wire.state is WireState.REJECTED


@pytest.mark.parametrize("decision", ["submitted", "rejected"])
async def test_a_wire_is_decided_on_also_while_the_bank_gives_no_answer(
    bench: Bench, decision: str
) -> None:
    send = await bench.wire(first_sent_seconds_ago=2 * TRANSIT_SECONDS)
    await bench.let_go(send)
    bench.core.faults["error"] = 1

    wire = await resolve(bench, str(send.command_id), decision)

    assert wire.state == decision


@pytest.mark.parametrize(
    ("at_bank", "detail"),
    [
        (None, "The bank does not have the wire."),
        (Decimal(9), "The bank has another wire under the id."),
    ],
    ids=["none", "another wire"],
)
async def test_a_wire_that_the_bank_does_not_have_is_not_submitted(
    bench: Bench, at_bank: Decimal | None, detail: str
) -> None:
    send = await bench.wire(first_sent_seconds_ago=2 * TRANSIT_SECONDS)
    await bench.let_go(send)
    transaction_id = str(send.command_id)
    if at_bank is not None:
        bench.core.carry_out_before(transaction_id, COMMAND.model_copy(update={"amount": at_bank}))

    with pytest.raises(InvalidState) as refused:
        await resolve(bench, transaction_id, "submitted")

    assert refused.value.detail == detail
    assert (await bench.found(send)).is_unknown
    assert await entries(bench, transaction_id) == []


async def test_a_wire_that_the_bank_has_is_submitted_as_an_operator_decides(bench: Bench) -> None:
    send = await bench.wire(first_sent_seconds_ago=2 * TRANSIT_SECONDS)
    await bench.let_go(send)
    bench.core.carry_out_before(str(send.command_id), COMMAND)

    wire = await resolve(bench, str(send.command_id), "submitted")

    assert (wire.state, wire.reason) == (WireState.SUBMITTED, WireReason.DECIDED_BY_OPERATOR)


async def test_a_wire_that_is_held_is_audited_with_the_reason(bench: Bench) -> None:
    send = await bench.wire(first_sent_seconds_ago=1)
    await bench.let_go(send)

    with pytest.raises(InvalidState):
        await resolve(bench, str(send.command_id), "rejected")

    [entry] = await entries(bench, str(send.command_id))
    assert (entry["action"], entry["actor"]) == ("wires.hold", "operator:ada")
    assert entry["reason"] == "By telephone."


async def test_a_decision_that_is_refused_leaves_no_trace(bench: Bench) -> None:
    send = await bench.wire(WireState.SUBMITTED)

    with pytest.raises(InvalidState):
        await resolve(bench, str(send.command_id), "rejected")
    with pytest.raises(NotFound):
        await resolve(bench, str(uuid.uuid4()), "ask")

    assert await entries(bench, str(send.command_id)) == []


@pytest.mark.parametrize(
    ("at_bank", "recorded"),
    [
        ("submitted", []),
        ("completed", [WireState.COMPLETED]),
        ("rejected", [WireState.REJECTED]),
        ("returned", [WireState.COMPLETED, WireState.RETURNED]),
    ],
)
async def test_a_submitted_wire_of_which_the_bank_reported_in_vain_is_brought_to_the_state_it_has_there(
    bench: Bench, at_bank: str, recorded: list[WireState]
) -> None:
    send = await bench.wire(WireState.SUBMITTED)
    await bench.finish(send)
    transaction_id = str(send.command_id)
    bench.core.carry_out_before(transaction_id, COMMAND)
    bench.core.become(at_bank, transaction_id, "the bank's words")

    wire = await resolve(bench, transaction_id, "ask")

    assert [step.state for step in wire.history][2:] == recorded
    says_why = at_bank in {"rejected", "returned"}
    assert wire.reason_detail == ("the bank's words" if says_why else None)
    told = await events_about(bench, transaction_id)
    assert told == ["created", "submitted", *(state.value for state in recorded)]
    [entry] = await entries(bench, transaction_id)
    assert (entry["action"], entry["actor"]) == ("wires.resolve", "operator:ada")


@pytest.mark.parametrize(
    ("at_bank", "recorded"),
    [("submitted", []), ("completed", []), ("returned", [WireState.RETURNED])],
)
async def test_a_completed_wire_whose_return_the_feed_skipped_is_brought_to_the_state_it_has_at_the_bank(
    bench: Bench, at_bank: str, recorded: list[WireState]
) -> None:
    send = await bench.wire(WireState.SUBMITTED, WireState.COMPLETED)
    await bench.finish(send)
    transaction_id = str(send.command_id)
    bench.core.carry_out_before(transaction_id, COMMAND)
    bench.core.become(at_bank, transaction_id, "the bank's words")

    wire = await resolve(bench, transaction_id, "ask")

    assert [step.state for step in wire.history][3:] == recorded
    told = await events_about(bench, transaction_id)
    assert told == ["created", "submitted", "completed", *(state.value for state in recorded)]


async def test_a_completed_wire_stays_as_it_is_where_the_bank_shows_it_as_rejected(
    bench: Bench,
) -> None:
    send = await bench.wire(WireState.SUBMITTED, WireState.COMPLETED)
    await bench.finish(send)
    transaction_id = str(send.command_id)
    bench.core.carry_out_before(transaction_id, COMMAND)
    bench.core.become("rejected", transaction_id, "the bank's words")

    with pytest.raises(InvalidState) as refused:
        await resolve(bench, transaction_id, "ask")

    assert "The bank has the wire as rejected" in refused.value.detail
    assert (await bench.found(send)).state is WireState.COMPLETED


async def test_a_wire_takes_no_state_of_another_one_that_the_bank_has_under_its_id(
    bench: Bench,
) -> None:
    send = await bench.wire(WireState.SUBMITTED)
    await bench.finish(send)
    transaction_id = str(send.command_id)
    bench.core.carry_out_before(transaction_id, COMMAND.model_copy(update={"amount": Decimal(9)}))
    bench.core.become("completed", transaction_id)

    with pytest.raises(InvalidState) as refused:
        await resolve(bench, transaction_id, "ask")

    assert refused.value.detail == "The bank has another wire under the id."
    assert (await bench.found(send)).state is WireState.SUBMITTED


async def events_about(bench: Bench, transaction_id: str) -> list[str]:
    """The kinds of the wire's events that were recorded, in their order."""
    async with bench.database.transaction() as connection:
        rows = await connection.execute(
            text("SELECT type FROM outbox WHERE resource_id = :id ORDER BY sequence"),
            {"id": transaction_id},
        )
        return [row.type.removeprefix("wire.") for row in rows]


@pytest.mark.parametrize(
    ("fault", "refusal"), [(None, InvalidState), ("error", Unavailable)], ids=["absent", "away"]
)
async def test_a_submitted_wire_stays_as_it_is_where_the_bank_does_not_show_it(
    bench: Bench, fault: str | None, refusal: type[BanksideError]
) -> None:
    send = await bench.wire(WireState.SUBMITTED)
    if fault is not None:
        bench.core.faults[fault] = 1

    with pytest.raises(refusal):
        await resolve(bench, str(send.command_id), "ask")

    assert (await bench.found(send)).state is WireState.SUBMITTED
    assert await entries(bench, str(send.command_id)) == []


async def test_every_conflict_of_a_wire_names_it(bench: Bench) -> None:
    transaction_id = str((await bench.wire(WireState.SUBMITTED)).command_id)
    handlers, because = operating(bench), "By telephone."
    decisions: list[Awaitable[Any]] = [
        resolve(bench, transaction_id, "rejected"),
        cancel(bench, transaction_id),
        handlers.approve_wire(
            ADA,
            contract.OperatorApproveWire(transaction_id=transaction_id, reason=because),
            soon(),
        ),
        handlers.decline_wire(
            ADA,
            contract.OperatorDeclineWire(transaction_id=transaction_id, reason=because),
            soon(),
        ),
    ]

    for decision in decisions:
        with pytest.raises(InvalidState) as refusal:
            await decision

        assert refusal.value.extra["transaction_id"] == transaction_id


async def test_an_operator_cancels_a_wire_of_which_nothing_was_sent_and_its_send_ends(
    bench: Bench,
) -> None:
    send = await bench.wire()
    transaction_id = str(send.command_id)

    wire = await cancel(bench, transaction_id)

    assert (wire.state, wire.reason) == (WireState.CANCELED, WireReason.CANCELED_BY_OPERATOR)
    assert wire.history[-1].comment == "By telephone."
    [entry] = await entries(bench, transaction_id)
    assert (entry["action"], entry["actor"]) == ("wires.cancel", "operator:ada")
    with pytest.raises(InvalidState):
        await bench.send(send)
    assert not bench.core.executed


@pytest.mark.parametrize("state", [None, WireState.SUBMITTED])
async def test_a_wire_that_may_have_been_sent_is_not_canceled(
    bench: Bench, state: WireState | None
) -> None:
    send = await bench.wire(*([state] if state else []), first_sent_seconds_ago=1)

    with pytest.raises(InvalidState):
        await cancel(bench, str(send.command_id))

    assert (await bench.found(send)).state is not WireState.CANCELED


async def test_an_operator_approves_a_wire_of_a_denied_customer_only_where_the_bank_has_it(
    bench: Bench,
) -> None:
    bench.owner = msgspec.structs.replace(MINE, customer_id=str(uuid.uuid4()))
    waiting, carried_out = await bench.waiting(), await bench.waiting()
    await bench.bank.send_wire(await bench.found_by(carried_out)).send(carried_out, soon())
    bench.is_denied = True

    def approve(transaction_id: uuid.UUID) -> Awaitable[Any]:
        command = contract.OperatorApproveWire(
            transaction_id=str(transaction_id), reason="By telephone."
        )
        return operating(bench).approve_wire(ADA, command, soon())

    with pytest.raises(InvalidState):
        await approve(waiting)
    approved = await approve(carried_out)

    assert approved.data.state is WireState.PENDING_SUBMISSION
    assert (await bench.found_by(waiting)).waits_for_approval
