"""What the tests of wires ask of the bank."""

from __future__ import annotations

import uuid
from collections import Counter
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from tests.integration.provider_sandbox.bank import Bank, Reply, external_account


@dataclass(frozen=True)
class Sender:
    """An account with funds, and an external account that wires may go to."""

    core_id: str
    account_id: str
    external_account_id: str

    def order(self, amount: object, **more: object) -> dict[str, object]:
        return {
            "account_id": self.account_id,
            "external_account_id": self.external_account_id,
            "amount": amount,
            "purpose": "Invoice 7",
            **more,
        }


def new_id() -> str:
    return str(uuid.uuid4())


async def open_sender(bank: Bank, funds: str | None = "100.00") -> Sender:
    opened = await bank.open_account()
    link = await bank.done("/core/external-accounts", external_account(opened.core_id, "123456"))
    if funds is not None:
        assert (await bank.deposit(opened.account_id, funds)).status == 200
    return Sender(opened.core_id, opened.account_id, link["external_account_id"])


async def send(
    bank: Bank, sender: Sender, amount: object, key: str | None = None, **more: object
) -> Reply:
    return await bank.write("/core/wires", sender.order(amount, **more), key=key or new_id())


async def sent(bank: Bank, sender: Sender, amount: str, key: str | None = None) -> str:
    """The transaction id of a wire that has to be accepted."""
    reply = await send(bank, sender, amount, key)
    assert reply.status == 200, reply
    transaction_id: str = reply.body["transaction_id"]
    return transaction_id


async def act(bank: Bank, transaction_id: str, action: str, **body: object) -> Reply:
    return await bank.simulate(f"wires/{transaction_id}/{action}", body)


async def news_of(bank: Bank, account_id: str) -> list[dict[str, Any]]:
    """The account's entries in core banking's feed; none is missing before them."""
    entries: list[dict[str, Any]] = []
    while page := (await bank.get("/core/events", after=len(entries), limit=500)).body["events"]:
        entries += page
    assert [entry["position"] for entry in entries] == list(range(1, len(entries) + 1))
    return [entry for entry in entries if entry["account_id"] == account_id]


async def assert_books_agree(bank: Bank, sender: Sender, funds: str) -> None:
    """Wires, ledger, feed and balance of an account tell the same, to the cent."""
    wires = await bank.truth("wires", account_id=sender.account_id)
    ledger = await bank.truth("ledger", account_id=sender.account_id)
    entries = await news_of(bank, sender.account_id)
    shown = (await bank.get(f"/financial/accounts/{sender.account_id}/balance")).body

    told: dict[str, list[str]] = {}
    for entry in entries:
        told.setdefault(entry["transaction_id"], []).append(entry["type"].removeprefix("wire."))
    stories = {
        "submitted": ["submitted"],
        "completed": ["submitted", "completed"],
        "rejected": ["submitted", "rejected"],
        "returned": ["submitted", "completed", "returned"],
    }
    assert told == {wire["transaction_id"]: stories[wire["state"]] for wire in wires}

    debits = {row["transaction_id"]: row["amount"] for row in ledger if row["type"] == "wire"}
    assert debits == {
        wire["transaction_id"]: f"-{wire['amount']}"
        for wire in wires
        if wire["state"] in {"completed", "returned"}
    }
    returned = Counter(row["amount"] for row in ledger if row["type"] == "return")
    assert returned == Counter(wire["amount"] for wire in wires if wire["state"] == "returned")

    held = sum((Decimal(w["amount"]) for w in wires if w["state"] == "submitted"), Decimal(0))
    gone = sum((Decimal(w["amount"]) for w in wires if w["state"] == "completed"), Decimal(0))
    assert Decimal(shown["held"]) == held
    assert Decimal(shown["total"]) == Decimal(funds) - gone
    assert Decimal(shown["total"]) == sum(Decimal(row["amount"]) for row in ledger)
    assert Decimal(shown["available"]) == Decimal(funds) - gone - held >= 0
