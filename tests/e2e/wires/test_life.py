"""What becomes of a wire at the bank is what the customer sees: its state, its money, its events."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from tests.e2e.ledger.hands import bank_with
from tests.e2e.wires.hands import WIRES, Sender, new_sender
from tests.support.live import Live


def balance(available: str, held: str) -> dict[str, Decimal]:
    amounts = {"available": Decimal(available), "held": Decimal(held)}
    return amounts | {"total": amounts["available"] + amounts["held"]}


def states(wire: Any) -> list[str]:
    assert wire["state"] == wire["history"][-1]["state"]
    moments = [step["at"] for step in wire["history"]]
    assert moments == sorted(moments)
    return [step["state"] for step in wire["history"]]


async def one_transaction(sender: Sender, transaction_id: str) -> tuple[str, Decimal, bool]:
    """What the account's history holds under this id, once: type, amount, whether it is a debit."""
    (row,) = (await sender.account.read("transactions", transaction_id=transaction_id)).data
    return row["type"], Decimal(row["amount"]), row["debit_credit_flag"]


async def test_a_wire_is_completed_by_itself_and_is_a_debit_of_the_account(live: Live) -> None:
    sender = await new_sender(live, "100.00")

    answer = await sender.send("12.34")
    transaction_id = answer.data["transaction_id"]
    wire = await sender.has_state(transaction_id, "completed")

    assert answer.data == {
        "transaction_id": transaction_id,
        "sending_account_id": sender.account_id,
        "external_account_id": sender.external_account_id,
        "amount": Decimal("12.34"),
        "note": "Invoice 2047",
    }
    assert answer.data.items() <= wire.items()
    assert states(wire) == ["pending_submission", "submitted", "completed"]
    assert await sender.account.balance() == balance("87.66", "0.00")
    assert await one_transaction(sender, transaction_id) == ("wire", Decimal("12.34"), True)
    assert (await sender.api.get(f"{WIRES}?state=completed")).data == [wire]
    assert [row["amount"] for row in await sender.posted()] == ["100.00", "-12.34"]
    await sender.has_told([transaction_id], "created", "submitted", "completed")


async def test_an_amount_ending_in_66_is_rejected_by_itself_and_costs_nothing(live: Live) -> None:
    sender = await new_sender(live, "100.00")

    transaction_id = await sender.sent("99.66")
    wire = await sender.has_state(transaction_id, "rejected")

    assert states(wire) == ["pending_submission", "submitted", "rejected"]
    assert wire["reason"] == "provider_refused"
    assert wire["reason_detail"]
    assert await sender.account.balance() == balance("100.00", "0.00")
    assert [row["amount"] for row in await sender.posted()] == ["100.00"]
    await sender.has_told([transaction_id], "created", "submitted", "rejected")


async def test_funds_are_held_until_the_bank_decides_and_come_back_with_a_return(
    live: Live,
) -> None:
    sender = await new_sender(live, "100.00")

    async with bank_with(live, wire_seconds=3600):
        first, second = await sender.sent("30.01"), await sender.sent("20.02")
        both_held = await sender.account.balance()
        too_much = await sender.send("49.98")
        await live.bank.simulate(f"wires/{first}/complete")
        await live.bank.simulate(f"wires/{second}/reject", reason="No such beneficiary.")
        await sender.has_state(first, "completed")
        rejected = await sender.has_state(second, "rejected")
        settled = await sender.account.balance()
        await live.bank.simulate(f"wires/{first}/return", reason="Account closed.")
        returned = await sender.has_state(first, "returned")

    assert both_held == balance("49.97", "50.03")
    assert too_much.code == "insufficient_funds"
    assert settled == balance("69.99", "0.00")
    assert await sender.account.balance() == balance("100.00", "0.00")
    assert states(rejected)[-1] == "rejected"
    assert states(returned) == ["pending_submission", "submitted", "completed", "returned"]
    assert [rejected["reason"], returned["reason"]] == ["provider_refused", "returned"]
    details = [rejected["reason_detail"], returned["reason_detail"]]
    assert all(details)
    assert not live.bank.gives_reasons or details == ["No such beneficiary.", "Account closed."]
    assert await one_transaction(sender, first) == ("wire", Decimal("30.01"), True)
    credit = (await sender.account.ids())[0]
    assert credit not in {first, second}
    assert await one_transaction(sender, credit) == ("return", Decimal("30.01"), False)
    assert [row["amount"] for row in await sender.posted()] == ["100.00", "-30.01", "30.01"]
    await sender.has_told([first], "created", "submitted", "completed", "returned")
    await sender.has_told([second], "created", "submitted", "rejected")
