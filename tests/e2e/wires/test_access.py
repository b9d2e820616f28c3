"""A wire is its sender's alone: for everybody else it does not exist."""

from __future__ import annotations

import uuid
from typing import Any

from tests.e2e.wires.hands import WIRE, WIRES, Sender
from tests.support.api import Answer


def problem(answer: Answer) -> dict[str, Any]:
    return {name: value for name, value in answer.body.items() if name != "request_id"}


async def test_wires_of_others_are_neither_listed_nor_shown_nor_canceled(
    sender: Sender, others: list[Sender]
) -> None:
    transaction_id = await sender.sent("1.66")
    mine, unknown = await sender.wire(transaction_id), uuid.uuid4()

    for other in others:
        theirs = await other.sent("2.66")
        shown = await other.api.get(f"{WIRES}/{transaction_id}")
        canceled = await other.api.call("POST", f"{WIRES}/{transaction_id}/cancel")
        listed = await other.api.get(f"{WIRES}?limit=100")
        nobodys = await other.api.get(f"{WIRES}/{unknown}")

        assert (shown.status, shown.code) == (canceled.status, canceled.code) == (404, "not_found")
        assert problem(shown) == problem(nobodys)
        ids = [wire["transaction_id"] for wire in listed.data]
        assert theirs in ids
        assert listed.body["pagination"]["total"] == len(ids)
        assert {wire["sending_account_id"] for wire in listed.data} == {other.account_id}
    assert (await sender.wire(transaction_id))["history"][:2] == mine["history"]


async def test_a_partner_has_no_wires(sender: Sender) -> None:
    transaction_id = await sender.sent("1.66")
    partner = sender.live.partner

    answers = [
        await partner.get(WIRES),
        await partner.get(f"{WIRES}/{transaction_id}"),
        await partner.call("POST", f"{WIRES}/{transaction_id}/cancel"),
        await partner.call("POST", WIRE, sender.order()),
    ]

    assert {(answer.status, answer.code) for answer in answers} == {(403, "wrong_route_family")}
