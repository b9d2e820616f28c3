"""What tests ask of the fake of Increase, in the words in which they ask the sandbox.

Of `Bank`, this has what both banks can do. What a test asks of the sandbox alone (`simulate`, `patch`, `customers`)
fails here with the sandbox's own path.
"""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import aiohttp

from tests.support.bank import Bank, Row

OPERATIONS = {
    "*": "*",
    "create_customer": "POST /entities",
    "get_customer": "GET /entities/{id}",
    "update_customer": "PATCH /entities/{id}",
    "close_customer": "POST /entities/{id}/archive",
    "cancel_customer": "POST /entities/{id}/archive",
    "create_external_account": "POST /external_accounts",
    "close_external_account": "PATCH /external_accounts/{id}",
    "open_account": "POST /accounts",
    "close_account": "POST /accounts/{id}/close",
    "send_wire": "POST /wire_transfers",
    "get_wire": "GET /wire_transfers/{id}",
    "list_wires": "GET /wire_transfers",
    "get_operation": "GET /wire_transfers",
    "list_events": "GET /events",
    "get_account": "GET /accounts/{id}",
    "get_balance": "GET /accounts/{id}/balance",
    "list_transactions": "GET /transactions",
    "list_ach": "GET /ach_transfers",
    "list_statements": "GET /account_statements",
    "list_deposit_locations": "GET /accounts/{id}/intrafi_balance",
    "list_external_accounts": "GET /external_accounts",
}
"""By the sandbox's names."""
DECISIONS = {
    "approved": {"validation": "valid"},
    "pending_review": {"validation": "pending"},
    "awaiting_documents": {"issues": ["entity_tax_identifier"]},
    "denied": {"status": "disabled", "issues": ["entity_tax_identifier"]},
}


class BankAtIncrease(Bank):
    def __init__(self, session: aiohttp.ClientSession, base_url: str, key: str) -> None:
        super().__init__(session, base_url)
        self._headers = {"Authorization": f"Bearer {key}"}

    async def fault(self, api: str, operation: str, kind: str, **more: Any) -> None:
        del api  # Increase has one
        rule = {"operation": OPERATIONS[operation], "kind": kind, **more}
        await self._done("PUT", "/fake/faults", rule)

    async def faults(self) -> list[Row]:
        rows: list[Row] = (await self._done("GET", "/fake/faults"))["faults"]
        return rows

    async def heal(self) -> None:
        await self._done("DELETE", "/fake/faults")

    async def violations(self) -> list[Row]:
        """What the services asked that Increase's types do not allow, since the last look."""
        rows: list[Row] = (await self._done("GET", "/fake/violations"))["violations"]
        await self._done("DELETE", "/fake/violations")
        return rows

    async def decide_entity(self, entity_id: str, decision: str) -> None:
        """approved, pending_review, awaiting_documents or denied."""
        await self._done("POST", f"/fake/entities/{entity_id}", DECISIONS[decision])

    async def deposit(self, account_id: str, amount: Decimal) -> None:
        numbers = await self._api("GET", f"/account_numbers?account_id={account_id}")
        body = {
            "account_number_id": numbers["data"][0]["id"],
            "amount": int(amount * 100),
            "debtor_name": "A payer",
        }
        await self._api("POST", "/simulations/inbound_wire_transfers", body)

    async def move_wire(self, wire_id: str, status: str) -> None:
        await self._done("POST", f"/fake/wires/{wire_id}", {"status": status})

    async def wires(self, account_id: str) -> list[Row]:
        """As the sandbox tells them: `transaction_id` is the key under which the wire was sent."""
        found = await self._done("GET", f"/fake/truth/wires?account_id={account_id}")
        return [
            {
                "transaction_id": wire["idempotency_key"],
                "state": wire["status"],
                "amount": Decimal(wire["amount"]) / 100,
                "account_id": wire["account_id"],
            }
            for wire in found["wires"]
        ]

    async def ledger(self, account_id: str) -> list[Row]:
        """Every transaction of the account as Increase shows it, the oldest first."""
        found = await self._done("GET", f"/fake/truth/postings?account_id={account_id}")
        rows: list[Row] = found["postings"]
        return rows

    async def entities(self) -> list[Row]:
        rows: list[Row] = (await self._done("GET", "/fake/truth/entities"))["entities"]
        return rows

    async def _api(self, method: str, path: str, body: Any = None) -> Any:
        status, answer = await self._call(method, path, body, headers=self._headers)
        assert status == 200, f"{method} {path}: {status} {answer}"
        return answer
