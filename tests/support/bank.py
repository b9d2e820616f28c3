"""What a test asks of the provider sandbox: to make things happen, to fail, and to tell what it believes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from decimal import Decimal
from typing import Any
from uuid import uuid4

import aiohttp
import pytest

SECONDS = 20.0

Row = dict[str, Any]


class Bank:
    """What tests ask of a bank. Attributes of the class tell where the banks differ.

    Args:
        judges_each: it verifies a business and each of its persons by itself, and says of each that it is not decided.
        explains_denials: it says what is wrong with a business or person that it does not take.
        restricts_accounts: an account can be restricted by itself, which its readers are shown and told.
        has_reserves: an account may have a reserve account, and its settlement calculations.
        loads_any_day: a load of deposits can be of any day, and is told; otherwise it is of the last weekday and not
            told.
        links_end_as_it_likes: how long a statement's link lasts is the bank's setting; otherwise ledger_read says it.
        link_seconds: how long it lasts, at least and at most.
        books_ach_at_settlement: it holds the money of an ACH request from its submission until then; otherwise it holds
            the money before the submission, and books it with that.
        gives_reasons: it says why it rejected or returned a wire.
        deposit_type: of the transaction that `deposit` and posts without a type make of a credit.
        shows_every_field: identity and core show all that they were told of a business and a person.
        balance_labels: before the opening and the closing balance in a statement's document.
        forgets_what_keys_made: it finds nothing by a key that it no longer remembers; otherwise what a key made is
            found by it for ever.
        has_crash_points: a test chooses at which point of its work it dies.
        onboarding: the writes of an onboarding, by API and operation.
        undoing: those that take one back.
        knowing: the APIs that have a record of each customer.
    """

    judges_each = True
    explains_denials = True
    restricts_accounts = True
    has_reserves = True
    loads_any_day = True
    links_end_as_it_likes = True
    link_seconds = (895, 905)
    books_ach_at_settlement = True
    gives_reasons = True
    deposit_type = "deposit"
    shows_every_field = True
    balance_labels = ("Opening balance on", "Closing balance on")
    forgets_what_keys_made = True
    has_crash_points = True
    onboarding: tuple[tuple[str, str], ...] = (
        ("identity", "create_customer"),
        ("core", "create_customer"),
        ("core", "create_external_account"),
        ("core", "open_account"),
    )
    undoing: tuple[tuple[str, str], ...] = (
        ("core", "close_external_account"),
        ("core", "close_customer"),
        ("identity", "cancel_customer"),
    )
    knowing: tuple[str, ...] = ("identity", "core")

    def needs(self, capability: str) -> None:
        """Skip the test where the bank lacks this, which is one of the class's attributes."""
        if not getattr(self, capability):
            pytest.skip(f"{type(self).__name__} has not: {capability}")

    def __init__(self, session: aiohttp.ClientSession, base_url: str) -> None:
        self._session = session
        self._base_url = base_url

    @property
    def documents_url(self) -> str:
        """Statements' documents are below it."""
        return f"{self._base_url}/documents/statements/"

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

    async def held(self, customer_id: str, person: Row | None = None) -> list[Row]:
        """What identity and core hold of a business, or of one of its persons, which is as the interface shows it."""
        kind = "business" if person is None else "person"
        whose = customer_id if person is None else person["customer_id"]
        rows = [row for row in await self.customers(whose) if row["kind"] == kind]
        records = {row["api"]: row["fields"] for row in rows}
        return [records["identity"], records["core"]]

    def agrees(self, held: Row, expected: Row) -> None:
        """Raises AssertionError: a field that is held is another; or it is not held, and the bank shows every field."""
        for name, value in expected.items():
            if name not in held and not self.shows_every_field:
                continue
            if isinstance(value, dict):
                self.agrees(held[name], value)
            else:
                assert held.get(name) == value, (name, held.get(name), value)

    async def linked(self, customer_id: str, numbers: Collection[str]) -> list[Row]:
        """The customer's external accounts. `numbers` are the account numbers of all of these; a bank that does not
        know whose an external account is finds them by it, and has no `primary`.
        """
        del numbers
        return await self.external_accounts(customer_id)

    async def businesses(self, body: Any) -> set[str]:
        """The ids of ours under which the bank has the business of an application."""
        ein = body["business"]["ein"]
        rows = await self.customers()
        return {row["customer_id"] for row in rows if row["fields"].get("ein") == ein}

    async def has_nothing_open(self, body: Any) -> None:
        """Of this application nothing is active, and no account open. Raises AssertionError."""
        numbers = {body["business"]["ein"], *(person["tin"] for person in body["persons"])}
        rows = [
            row
            for row in await self.customers()
            if numbers & {row["fields"].get("ein"), row["fields"].get("tin")}
        ]
        assert {row["status"] for row in rows} <= {"canceled", "closed", "denied"}
        if not rows:
            return
        owners = {row["customer_id"] for row in rows}
        assert await self.external_accounts(*owners) == []
        accounts = await self.accounts(*owners)
        assert [row for row in accounts if row["status"] != "closed"] == []

    async def names(self, data: Any) -> set[str]:
        """Of an onboarding's business and its first person, the last name: in all records of them."""
        ids = [data["business"]["customer_id"], data["persons"][0]["customer_id"]]
        rows = await self.customers(*ids)
        assert len(rows) == len(ids) * len(self.knowing)
        name = {"business": "business_name", "person": "last_name"}
        return {row["fields"][name[row["kind"]]] for row in rows}

    async def primaries(self, customer: Any) -> dict[str, bool]:
        """The external accounts of a customer, as our API shows it, and which is the primary one."""
        rows = await self.external_accounts(customer["customer_id"])
        return {row["external_account_id"]: row["primary"] for row in rows}

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
