"""One Idempotency-Key is one wire, however often and by however many it is sent."""

from __future__ import annotations

import asyncio
from collections import Counter

from tests.e2e.wires.hands import WIRES, Sender
from tests.support.api import Answer


async def test_one_key_from_fifty_clients_is_one_wire(sender: Sender, idempotency_key: str) -> None:
    before = await sender.at_bank()

    answers = await asyncio.gather(
        *(sender.send(idempotency_key=idempotency_key) for _ in range(50))
    )

    done = [answer for answer in answers if answer.status == 200]
    refused = [(answer.status, answer.code) for answer in answers if answer.status != 200]
    assert set(refused) <= {(409, "idempotency_in_progress")}
    assert len({answer.raw for answer in done}) == 1
    assert Counter(answer.is_replayed for answer in done)[False] == 1
    transaction_id = done[0].data["transaction_id"]
    assert (await sender.at_bank()).keys() - before.keys() == {transaction_id}
    again = await sender.send(idempotency_key=idempotency_key)
    assert (again.raw, again.is_replayed) == (done[0].raw, True)
    for body in ({"amount": "10.01"}, {"purpose": "Another"}):
        other = await sender.send(idempotency_key=idempotency_key, **body)
        assert (other.status, other.code) == (409, "idempotency_key_reused")
    assert len(await sender.at_bank()) == len(before) + 1
    await sender.has_state(transaction_id, "completed")
    await sender.has_told([transaction_id], "created", "submitted", "completed")


async def test_a_504_names_the_wire_and_replays_as_the_final_answer(
    sender: Sender, idempotency_key: str
) -> None:
    await sender.sent("1.66")  # The bank is not being left alone, so the next send begins at once.
    bank, before = sender.live.bank, await sender.at_bank()
    await bank.fault(
        "core", "send_wire", "latency", milliseconds=int(1300 * sender.live.deadline_seconds)
    )

    pending = await sender.send(idempotency_key=idempotency_key)
    transaction_id = pending.body["transaction_id"]
    meanwhile = await sender.send(idempotency_key=idempotency_key)
    wire = await sender.wire(transaction_id)
    canceled = await sender.api.call("POST", f"{WIRES}/{transaction_id}/cancel")
    await bank.heal()
    final = await sender.final(idempotency_key)
    again = await sender.send(idempotency_key=idempotency_key)

    assert (pending.status, pending.code) == (504, "outcome_pending")
    assert (meanwhile.code, meanwhile.headers["Retry-After"]) == ("idempotency_in_progress", "1")
    assert meanwhile.body["transaction_id"] == transaction_id
    assert canceled.body["transaction_id"] == transaction_id
    assert wire["state"] == "pending_submission"
    assert (canceled.status, canceled.code) == (409, "invalid_state")
    assert_replayed(final, transaction_id)
    assert_replayed(again, transaction_id)
    assert (await sender.at_bank()).keys() - before.keys() == {transaction_id}
    await sender.has_state(transaction_id, "completed")
    await sender.has_told([transaction_id], "created", "submitted", "completed")


def assert_replayed(answer: Answer, transaction_id: str) -> None:
    assert answer.is_replayed
    assert answer.data["transaction_id"] == transaction_id


async def test_a_504_of_a_wire_that_is_then_refused_replays_as_the_refusal(
    sender: Sender, idempotency_key: str
) -> None:
    before = await sender.at_bank()
    await sender.live.bank.fault("core", "send_wire", "error")

    pending = await sender.send("9999999999.99", idempotency_key)
    await sender.live.bank.heal()
    final = await sender.final(idempotency_key, "9999999999.99")

    assert (pending.status, pending.code) == (504, "outcome_pending")
    assert (final.status, final.code) == (409, "insufficient_funds")
    assert final.is_replayed
    wire = await sender.wire(pending.body["transaction_id"])
    assert (wire["state"], wire["reason"]) == ("rejected", "insufficient_funds")
    assert (await sender.at_bank()).keys() == before.keys()
    await sender.has_told([wire["transaction_id"]], "created", "rejected")
