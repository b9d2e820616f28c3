"""What a test asks of the provider sandbox: to make things happen, to fail, and to tell what it believes."""

from __future__ import annotations

from collections import Counter
from decimal import Decimal
from typing import Any
from uuid import uuid4

import aiohttp

SECONDS = 20.0

Row = dict[str, Any]


class Bank:
    """
    Args:
        judges_each: it verifies a business and each of its persons by itself, and says of each that it is not decided.
    """

    judges_each = True

    def __init__(self, session: aiohttp.ClientSession, base_url: str) -> None:
        self._session = session
        self._base_url = base_url

    async def _call(
        self,
        method: str,
        path: str,
        body: Any = None,
        seconds: float = SECONDS,
        headers: dict[str, str] | None = None,
    ) -> tuple[int, Any]:
        async with self._session.request(
            method,
            self._base_url + path,
            json=body,
            headers=headers,
            timeout=aiohttp.ClientTimeout(total=seconds),
        ) as response:
            return response.status, await response.json(content_type=None)

    async def _done(
        self, method: str, path: str, body: Any = None, seconds: float = SECONDS
    ) -> Any:
        status, answer = await self._call(method, path, body, seconds)
        assert status < 300, f"{method} {path}: {status} {answer}"
        return answer

    async def fault(self, api: str, operation: str, kind: str, **more: Any) -> None:
        rule = {"api": api, "operation": operation, "kind": kind, **more}
        await self._done("PUT", "/faults", rule)

    async def faults(self) -> list[Row]:
        """Those that were ordered and may still strike."""
        rows: list[Row] = await self._done("GET", "/faults")
        return rows

    async def heal(self) -> None:
        await self._done("DELETE", "/faults")

    async def decide(self, customer_id: str, decision: str) -> None:
        body = {"customer_id": customer_id, "decision": decision}
        await self._done("POST", "/simulate/identity/decisions", body)

    async def deposit(self, account_id: str, amount: Decimal) -> None:
        body = {"account_id": account_id, "amount": str(amount), "counterparty_name": "A payer"}
        await self._done("POST", "/simulate/deposits", body)

    async def change(self, account_id: str, what: str) -> None:
        """restrict, unrestrict or close."""
        await self._done("POST", f"/simulate/accounts/{account_id}/{what}")

    async def unlink(self, external_account_id: str, token: str) -> None:
        """At core banking, of which nobody else is told."""
        headers = {"Authorization": f"Bearer {token}", "Idempotency-Key": uuid4().hex}
        path = f"/core/external-accounts/{external_account_id}/close"
        status, answer = await self._call("POST", path, {}, headers=headers)
        assert status == 200, answer

    async def simulate(self, what: str, seconds: float = SECONDS, /, **body: Any) -> Any:
        """`POST /simulate/<what>`; what it answers."""
        return await self._done("POST", f"/simulate/{what}", body or None, seconds)

    async def patch(self, what: str, /, **body: Any) -> Any:
        """`PATCH /simulate/<what>`; what it answers."""
        return await self._done("PATCH", f"/simulate/{what}", body)

    async def customers(self, *customer_ids: str) -> list[Row]:
        """All records at both providers of these customers or persons; of everybody when none is named."""
        return await self._truth("customers", customer_ids)

    async def accounts(self, *customer_ids: str) -> list[Row]:
        return await self._truth("accounts", customer_ids)

    async def external_accounts(self, *customer_ids: str) -> list[Row]:
        return await self._truth("external-accounts", customer_ids)

    async def has_once(self, data: Any) -> None:
        """All of an onboarding's answer is at both providers, once. Raises AssertionError."""
        customer_id = data["business"]["customer_id"]
        person_ids = [person["customer_id"] for person in data["persons"]]
        assert len(person_ids) == 2
        records = await self.customers(customer_id, *person_ids)
        assert Counter((row["api"], row["customer_id"]) for row in records) == Counter(
            (api, owner) for api in ("identity", "core") for owner in (customer_id, *person_ids)
        )
        assert {(row["api"], row["status"]) for row in records} == {
            ("identity", "approved"),
            ("core", "active"),
        }
        accounts = await self.accounts(customer_id)
        assert [(row["account_id"], row["status"]) for row in accounts] == [
            (data["business"]["account_id"], "open")
        ]
        linked = await self.external_accounts(customer_id)
        assert [(row["external_account_id"], row["primary"]) for row in linked] == [
            (data["external_bank_account"]["external_bank_account_id"], True)
        ]

    async def ledger(self, account_id: str) -> list[Row]:
        rows: list[Row] = await self._done("GET", f"/truth/ledger?account_id={account_id}")
        return rows

    async def wires(self, account_id: str) -> list[Row]:
        """Every wire that was ever accepted from this account, the oldest first."""
        rows: list[Row] = await self._done("GET", f"/truth/wires?account_id={account_id}")
        return rows

    async def _truth(self, what: str, customer_ids: tuple[str, ...]) -> list[Row]:
        rows: list[Row] = await self._done("GET", f"/truth/{what}")
        return [row for row in rows if not customer_ids or row["customer_id"] in customer_ids]
