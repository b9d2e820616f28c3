"""Limits of wires, and wires that a second key approves, over the whole stack."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest

from tests.e2e.wires.hands import WIRES, Sender
from tests.support.api import Answer, Api
from tests.support.people import new_key
from tests.support.reconciling import assert_reconciled

OWN_POLICY = "/customer/wire-policy"


class Office:
    """A customer with a policy: `sender` asks for wires, `second` approves them."""

    def __init__(self, sender: Sender, second: Api, reader: Api) -> None:
        self.sender = sender
        self.second = second
        self.reader = reader

    @property
    def policy_path(self) -> str:
        return f"/partner/reseller/customers/{self.sender.account.customer_id}/wire-policy"

    async def set_policy(self, **policy: Any) -> Answer:
        return await self.sender.live.partner.call("PUT", self.policy_path, policy)

    async def waiting(self, amount: str = "50.00") -> tuple[str, str]:
        """A wire that waits, and the key of its request."""
        key = new_key()
        answer = await self.sender.final(key, amount)
        assert (answer.status, answer.body["message"]) == (200, "Wire waiting for approval")
        return answer.data["transaction_id"], key


@pytest.fixture
async def office(sender: Sender) -> AsyncIterator[Office]:
    live, customer_id = sender.live, sender.account.customer_id

    async def key(*scopes: str) -> Api:
        chosen = [part for scope in scopes for part in ("--scope", scope)]
        return live.api(await live.stack.new_key("customer", "--customer", customer_id, *chosen))

    opened = Office(sender, await key(), await key("wires:read"))
    yield opened
    await opened.set_policy()


async def test_a_policy_is_set_by_the_partner_and_read_by_both(
    office: Office, others: list[Sender]
) -> None:
    policy = {
        "per_wire_limit": 1000.00,
        "daily_limit": 5000.00,
        "daily_count": 50,
        "approval_threshold": 500.00,
        "new_payee_hours": 24,
    }
    partner, neighbour, stranger = office.sender.live.partner, others[0], others[1]

    put = await office.set_policy(**policy)
    got, own = await partner.get(office.policy_path), await office.reader.get(OWN_POLICY)
    foreign = f"/partner/reseller/customers/{stranger.account.customer_id}/wire-policy"

    assert put.status == 200
    assert put.data == got.data == own.data
    assert {name: float(put.data[name]) for name in policy} == policy
    assert (await neighbour.api.get(OWN_POLICY)).data["daily_count"] is None
    assert (await partner.get(foreign)).status == 404
    assert (await partner.call("PUT", foreign, policy)).status == 404
    assert (await partner.call("PUT", office.policy_path, {"daily_count": -1})).status == 422
    assert (await office.set_policy()).data["daily_count"] is None


async def test_a_wire_beyond_a_limit_is_none(office: Office) -> None:
    await office.set_policy(per_wire_limit=20)
    before = await office.sender.total()

    answer = await office.sender.final(new_key(), "20.01")

    assert (answer.status, answer.code) == (409, "limit_exceeded")
    told = {name: answer.body[name] for name in ("limit", "allowed", "used")}
    assert told == {"limit": "per_wire", "allowed": 20, "used": 0}
    assert await office.sender.total() == before


async def test_a_policy_binds_wires_however_its_customers_id_is_written(office: Office) -> None:
    partner, customer_id = office.sender.live.partner, office.sender.account.customer_id
    path = office.policy_path.replace(customer_id, customer_id.upper())

    put = await partner.call("PUT", path, {"per_wire_limit": 20})
    wire = await office.sender.final(new_key(), "20.01")

    assert (
        (await partner.get(path)).data == put.data == (await partner.get(office.policy_path)).data
    )
    assert put.data["customer_id"] == customer_id
    assert (wire.status, wire.code) == (409, "limit_exceeded")


async def test_a_wire_waits_until_another_key_approves_it(office: Office) -> None:
    sender = office.sender
    await office.set_policy(approval_threshold=50)
    transaction_id, key = await office.waiting()
    path, approval = f"{WIRES}/{transaction_id}", new_key()

    by_itself = await sender.api.call("POST", f"{path}/approve", idempotency_key=approval)
    by_reader = await office.reader.call("POST", f"{path}/approve")
    listed = (await office.reader.get(f"{WIRES}?state=pending_approval&limit=100")).data
    at_bank_before = await sender.at_bank()
    approved = await sender.live.final("POST", f"{path}/approve", None, approval, api=office.second)
    again = await office.second.call("POST", f"{path}/approve", idempotency_key=approval)
    late = await office.second.call("POST", f"{path}/approve")
    replayed = await sender.final(key, "50.00")

    assert (by_itself.status, by_itself.code) == (403, "approver_is_initiator")
    assert (by_reader.status, by_reader.code) == (403, "insufficient_scope")
    assert transaction_id in {wire["transaction_id"] for wire in listed}
    assert transaction_id not in at_bank_before
    assert (approved.status, approved.body["message"]) == (200, "Wire submitted")
    assert again.is_replayed
    assert (late.status, late.code) == (409, "invalid_state")
    assert replayed.body["message"] == "Wire waiting for approval"
    wire = await sender.has_state(transaction_id, "completed")
    assert [(step["state"], step["by"]) for step in wire["history"]] == [
        ("pending_approval", sender.api.key.subscription_key),
        ("pending_submission", office.second.key.subscription_key),
        ("submitted", None),
        ("completed", None),
    ]
    assert (await sender.at_bank())[transaction_id] == "completed"
    await sender.has_told(
        [transaction_id], "approval_requested", "approved", "submitted", "completed"
    )
    await assert_reconciled(sender.live.stack)


async def test_a_wire_is_declined_by_another_key_or_canceled_by_any(office: Office) -> None:
    sender = office.sender
    await office.set_policy(approval_threshold=50)
    (declined, _), (canceled, _) = await office.waiting(), await office.waiting()
    reason = {"reason": "The invoice was paid last week."}

    key = new_key()
    by_itself = await sender.api.post(f"{WIRES}/{declined}/decline", reason, key)
    by_second = await office.second.post(f"{WIRES}/{declined}/decline", reason, key)
    by_sender = await sender.api.call("POST", f"{WIRES}/{canceled}/cancel")

    assert (by_itself.status, by_itself.code) == (403, "approver_is_initiator")
    last = by_second.data["history"][-1]
    assert (last["state"], last["reason"], last["comment"]) == (
        "canceled",
        "declined",
        reason["reason"],
    )
    assert last["by"] == office.second.key.subscription_key
    assert by_sender.data["state"] == "canceled"
    assert {declined, canceled}.isdisjoint(await sender.at_bank())
    await sender.has_told([declined, canceled], "approval_requested", "canceled")
