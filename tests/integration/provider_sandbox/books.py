"""What the tests of the ledger ask of the bank, in one line each."""

from __future__ import annotations

from typing import Any

from tests.integration.provider_sandbox.bank import Bank, Reply


async def transact(
    bank: Bank, account_id: str, amount: str, direction: str = "credit", **more: object
) -> Reply:
    body = {"account_id": account_id, "amount": amount, "direction": direction}
    return await bank.simulate("transactions", {**body, "counterparty_name": "Jane Roe", **more})


async def transacted(
    bank: Bank, account_id: str, amount: str, direction: str = "credit", **more: object
) -> Any:
    reply = await transact(bank, account_id, amount, direction, **more)
    assert reply.status == 200, reply
    return reply.body


async def listed(bank: Bank, account_id: str, what: str, **parameters: Any) -> Any:
    reply = await bank.get(f"/financial/accounts/{account_id}/{what}", **parameters)
    assert reply.status == 200, reply
    return reply.body


async def balance(bank: Bank, account_id: str) -> dict[str, str]:
    body = await listed(bank, account_id, "balance")
    return {key: body[key] for key in ("available", "held", "total")}


async def events_of(bank: Bank, account_id: str) -> list[tuple[str, Any]]:
    """The account's entries in the financial feed: type and data, in order."""
    found: list[tuple[str, Any]] = []
    after = 0
    while page := (await bank.get("/financial/events", after=after, limit=500)).body["events"]:
        after = page[-1]["position"]
        found += [(e["type"], e["data"]) for e in page if e["account_id"] == account_id]
    return found
