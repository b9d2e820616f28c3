"""`bankside wires` on a running stack."""

from __future__ import annotations

from tests.e2e.wires.hands import Sender

NOTHING = dict.fromkeys(("id", "state", "status", "amount", "account_id", "reason"))


async def test_an_operator_finds_a_wire_without_outcome_and_may_have_the_bank_asked(
    sender: Sender, idempotency_key: str
) -> None:
    stack = sender.live.stack
    known = await sender.sent("1.66")
    await sender.live.bank.fault("core", "send_wire", "error")
    pending = await sender.send("3.66", idempotency_key)
    transaction_id = pending.body["transaction_id"]

    listed = await stack.command("wires", "list", "--state", "pending_submission", "--unknown")
    shown = await stack.command("wires", "show", transaction_id)
    resolved = await stack.command("wires", "resolve", transaction_id, "--yes")
    await sender.live.bank.heal()
    final = await sender.final(idempotency_key, "3.66")

    assert pending.code == "outcome_pending"
    ids = [wire["transaction_id"] for wire in listed["wires"]]
    assert (transaction_id in ids, known in ids) == (True, False)
    assert shown["outcome_unknown"]
    assert shown["send"]["last_error"] == "outcome_pending"
    assert shown["customer_id"] == sender.account.customer_id
    assert shown["request"]["subscription_key"] == sender.api.key.subscription_key
    assert shown["request"]["request_id"] == pending.headers["X-Request-Id"]
    assert (shown["provider"], shown["provider_error"]) == ({"found": False} | NOTHING, None)
    assert (resolved["transaction_id"], resolved["outcome_unknown"]) == (transaction_id, True)
    assert final.data["transaction_id"] == transaction_id
    assert list(await sender.at_bank())[-1] == transaction_id
