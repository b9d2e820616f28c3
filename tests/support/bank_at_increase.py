"""What tests ask of the fake of Increase, in the words in which they ask the sandbox.

Of `Bank`, this has what both banks can do. Increase knows no customers of ours: what a test asks by their ids
(`customers`, `external_accounts`) fails here, but for what the ids of businesses lead to.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import aiohttp

from services.ledger_read.adapters.increase.ledger import statement_id_of
from services.ledger_read.adapters.increase.postings import id_of
from tests.support.bank import SECONDS, Bank, Row
from tests.support.increase_bank.ach import RETURN_CODES

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
    "create_account_number": "POST /account_numbers",
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
UPDATE_OWNER = "PATCH /entity_beneficial_owners/{id}"
DECISIONS = {
    "approved": {"validation": "valid"},
    "pending_review": {"validation": "pending"},
    "awaiting_documents": {"issues": ["entity_tax_identifier"]},
    "denied": {"status": "archived", "issues": ["entity_tax_identifier"]},
}
STATES = {
    "complete": "completed",
    "rejected": "rejected",
    "canceled": "rejected",
    "reversed": "returned",
}
"""The sandbox's words; all others are submitted."""
STEPS = {"complete": "complete", "reject": "rejected", "return": "reversed"}
RETURNS = {code: reason for reason, code in RETURN_CODES.items()}
CONDUCT = {"page_limit": 100, "wire_seconds": 2}
"""What the fake does unless a test has told it otherwise."""
CATEGORIES = {
    "deposit": "inbound_wire_transfer",
    "wire": "inbound_wire_transfer",
    "ach": "inbound_ach_transfer",
    "withdrawal": "inbound_ach_transfer",
    "return": "internal_source",
    "interest": "interest_payment",
    "fee": "fee_payment",
}
"""By the sandbox's types."""


class BankAtIncrease(Bank):
    judges_each = False
    explains_denials = False
    restricts_accounts = False
    has_reserves = False
    loads_any_day = False
    links_end_as_it_likes = False
    link_seconds = (895, 1805)
    books_ach_at_settlement = False
    gives_reasons = False
    deposit_type = "wire"
    shows_every_field = False
    balance_labels = ("Starting balance on", "Ending balance on")
    forgets_what_keys_made = False
    has_crash_points = False
    onboarding = (
        ("identity", "create_customer"),
        ("core", "create_external_account"),
        ("core", "open_account"),
    )
    undoing = (("core", "close_external_account"), ("core", "close_customer"))
    knowing = ("identity",)

    def __init__(self, session: aiohttp.ClientSession, base_url: str, key: str) -> None:
        super().__init__(session, base_url)
        self._headers = {"Authorization": f"Bearer {key}"}

    @property
    def documents_url(self) -> str:
        return f"{self._base_url}/downloads/"

    async def fault(self, api: str, operation: str, kind: str, **more: Any) -> None:
        del api  # Increase has one
        rule = {"operation": OPERATIONS[operation], "kind": kind, **more}
        if operation == "update_customer":
            # The sandbox's operation is that of persons, too: each has half of the times, if there is a number.
            if "times" in more:
                rule["times"] = max(1, more["times"] // 2)
            await self._done("PUT", "/fake/faults", rule | {"operation": UPDATE_OWNER})
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

    async def asked(self, *operations: str) -> int:
        """How often the bank was asked for these."""
        found = (await self._done("GET", "/fake/requests"))["requests"]
        return sum(found.get(OPERATIONS[operation], 0) for operation in operations)

    async def truth(self, what: str) -> list[Row]:
        """All objects of a kind, as `/fake/truth` names it, with a filter or without, the oldest first."""
        found = await self._done("GET", f"/fake/truth/{what}")
        rows: list[Row] = found[what.partition("?")[0]]
        return rows

    async def decide(self, customer_id: str, decision: str) -> None:
        [entity] = await self.entities_of(customer_id)
        await self.decide_entity(entity["id"], decision)

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

    async def unlink(self, external_account_id: str, token: str) -> None:
        del token  # the fake's own is used
        body = {"status": "archived"}
        await self._api("PATCH", f"/external_accounts/{external_account_id}", body)

    async def conduct(self, **rules: Any) -> None:
        """`PUT /fake/conduct`"""
        await self._done("PUT", "/fake/conduct", rules)

    async def move_wire(self, wire_id: str, status: str) -> None:
        await self._done("POST", f"/fake/wires/{wire_id}", {"status": status})

    async def change(self, account_id: str, what: str) -> None:
        """Increase restricts the entity rather than the account."""
        if what == "close":
            await self._done("POST", f"/fake/accounts/{account_id}/close")
            return
        status = {"restrict": "disabled", "unrestrict": "active"}[what]
        account = await self._api("GET", f"/accounts/{account_id}")
        await self._done("POST", f"/fake/entities/{account['entity_id']}", {"status": status})

    async def simulate(self, what: str, seconds: float = SECONDS, /, **body: Any) -> Any:
        """Of what the sandbox is told, that for which Increase has something like it."""
        match what.split("/"):
            case ["transactions"]:
                return await self._post_transaction(**body)
            case ["deposit-locations"]:
                return await self._sweep(**body)
            case ["statements"]:
                account_id = body.pop("account_id")
                path = f"/fake/accounts/{account_id}/statements"
                made = await self._done("POST", path, body, seconds)
                return {"statement_id": str(statement_id_of(made["id"]))}
            case ["history"]:
                return await self._load(seconds, **body)
            case ["ach"]:
                return await self._create_ach(**body)
            case ["ach", reference_id, step]:
                order = {"reason": RETURNS[body["return_code"]]} if body else {}
                path = f"/simulations/ach_transfers/{reference_id}/{step}"
                return await self._api("POST", path, order)
            case ["wires", transaction_id, step]:
                found = await self._api("GET", f"/wire_transfers?idempotency_key={transaction_id}")
                return await self.move_wire(found["data"][0]["id"], STEPS[step])
            case _:
                raise AssertionError(f"Increase has nothing like /simulate/{what}")

    async def _post_transaction(
        self,
        *,
        account_id: str,
        amount: str,
        direction: str,
        counterparty_name: str,
        settled_at: str | None = None,
        **more: Any,
    ) -> Any:
        usual = "deposit" if direction == "credit" else "withdrawal"
        cents = int(Decimal(amount) * 100)
        order = {
            "amount": cents if direction == "credit" else -cents,
            "category": CATEGORIES[more.get("type", usual)],
            "counterparty": counterparty_name,
            "description": counterparty_name,
            "at": settled_at,
        }
        made = await self._done("POST", f"/fake/accounts/{account_id}/postings", order)
        return {"transaction_id": str(id_of(made["id"]))}

    async def _sweep(self, *, account_id: str, load_date: str | None = None) -> Any:
        del load_date  # it is of the last weekday
        path = "/intrafi_account_enrollments"
        found = await self._api("GET", f"{path}?account_id={account_id}&status.in=enrolled")
        if not found["data"]:
            body = {"account_id": account_id, "email_address": "tests@example.com"}
            await self._api("POST", path, body)
        made = await self._done("POST", f"/fake/accounts/{account_id}/intrafi")
        return made | {"as_of_date": made["effective_date"]}

    async def _load(
        self, seconds: float, /, *, account_id: str, transactions: int, days: int
    ) -> Any:
        last = datetime.now(UTC) - timedelta(minutes=1)
        order = {
            "count": transactions,
            "first": (last - timedelta(days=days)).isoformat(),
            "last": last.isoformat(),
        }
        return await self._done("POST", f"/fake/accounts/{account_id}/history", order, seconds)

    async def _create_ach(self, *, account_id: str, amount: str) -> Any:
        body = {
            "account_id": account_id,
            "account_number": "987654321",
            "routing_number": "101050001",
            "amount": int(Decimal(amount) * 100),
            "statement_descriptor": "A payment",
        }
        return {"reference_id": (await self._api("POST", "/ach_transfers", body))["id"]}

    async def wires(self, account_id: str) -> list[Row]:
        """As the sandbox tells them: `transaction_id` is the key under which the wire was sent."""
        found = await self._done("GET", f"/fake/truth/wires?account_id={account_id}")
        return [
            {
                "transaction_id": wire["idempotency_key"],
                "state": STATES.get(wire["status"], "submitted"),
                "amount": f"{Decimal(wire['amount']) / 100:.2f}",
                "account_id": wire["account_id"],
            }
            for wire in found["wires"]
        ]

    async def ledger(self, account_id: str) -> list[Row]:
        """As the sandbox tells it, without names: a wire's posting has the wire's key as its id, others one of ours."""
        found = await self._done("GET", f"/fake/truth/wires?account_id={account_id}")
        keys = {wire["transaction_id"]: wire["idempotency_key"] for wire in found["wires"]}
        found = await self._done("GET", f"/fake/truth/postings?account_id={account_id}")
        return [
            {
                "transaction_id": keys.get(posting["id"], str(id_of(posting["id"]))),
                "account_id": posting["account_id"],
                "amount": f"{Decimal(posting['amount']) / 100:.2f}",
                "category": posting["source"]["category"],
                "type": "wire" if posting["id"] in keys else posting["source"]["category"],
                "settled_at": posting["created_at"],
            }
            for posting in found["postings"]
        ]

    async def entities_of(self, customer_id: str) -> list[Row]:
        """Those that were made for a business: their description is its id."""
        rows = await self.truth("entities")
        return [row for row in rows if row["description"] == customer_id]

    async def accounts(self, *customer_ids: str) -> list[Row]:
        found: list[Row] = []
        for customer_id in customer_ids:
            for entity in await self.entities_of(customer_id):
                found += [
                    {"account_id": row["id"], "customer_id": customer_id, "status": row["status"]}
                    for row in await self.truth(f"accounts?entity_id={entity['id']}")
                ]
        return found

    async def held(self, customer_id: str, person: Row | None = None) -> list[Row]:
        """In our words, the fields that Increase shows whole: one entity is identity and core."""
        [entity] = await self.entities_of(customer_id)
        corporation = entity["corporation"]
        if person is None:
            return [
                {
                    "business_name": corporation["name"],
                    "business_address": _address(corporation["address"]),
                    "ein": corporation["legal_identifier"]["value"],
                    "email": corporation["email"],
                    "website": corporation["website"],
                    "naics_code": corporation["industry_code"],
                    "formation_state": corporation["incorporation_state"],
                }
            ]
        owners = [owner["individual"] for owner in corporation["beneficial_owners"]]
        name = f"{person['first_name']} {person['last_name']}"
        return [
            {
                **{part: person[part] for part in ("first_name", "last_name")},
                "date_of_birth": owner["date_of_birth"],
                "home_address": _address(owner["address"]),
            }
            for owner in owners
            if owner["name"] == name
        ]

    async def linked(self, customer_id: str, numbers: Collection[str]) -> list[Row]:
        del customer_id
        return [
            {"external_account_id": row["id"]}
            for row in await self.truth("external-accounts")
            if row["account_number"] in numbers and row["status"] == "active"
        ]

    async def has_once(self, data: Any) -> None:
        """One entity is identity and customer; external accounts belong to no one."""
        business = data["business"]
        entities = await self.entities_of(business["customer_id"])
        assert [(row["status"], row["validation"]["status"]) for row in entities] == [
            ("active", "valid")
        ]
        owners = entities[0]["corporation"]["beneficial_owners"]
        assert len(owners) == len({owner["individual"]["name"] for owner in owners})
        accounts = await self.accounts(business["customer_id"])
        assert [(row["account_id"], row["status"]) for row in accounts] == [
            (business["account_id"], "open")
        ]
        linked = data["external_bank_account"]["external_bank_account_id"]
        external = await self._api("GET", f"/external_accounts/{linked}")
        assert external["status"] == "active"

    async def businesses(self, body: Any) -> set[str]:
        rows = await self.truth("entities")
        eins = {row["description"]: row["corporation"]["legal_identifier"] for row in rows}
        return {name for name, ein in eins.items() if ein["value"] == body["business"]["ein"]}

    async def has_nothing_open(self, body: Any) -> None:
        number = body["external_bank_account"]["account_number"]
        for customer_id in await self.businesses(body):
            entities = await self.entities_of(customer_id)
            assert {entity["status"] for entity in entities} == {"archived"}
            accounts = await self.accounts(customer_id)
            assert {account["status"] for account in accounts} <= {"closed"}
        external = await self.truth("external-accounts")
        states = {row["status"] for row in external if row["account_number"] == number}
        assert states <= {"archived"}

    async def names(self, data: Any) -> set[str]:
        [entity] = await self.entities_of(data["business"]["customer_id"])
        corporation = entity["corporation"]
        first = corporation["beneficial_owners"][0]["individual"]["name"]
        return {corporation["name"], first.removeprefix("Ada ")}

    async def primaries(self, customer: Any) -> dict[str, bool]:
        """Those that our API shows; each is at the bank once."""
        shown = {
            row["external_bank_account_id"]: row["primary"]
            for row in customer["external_bank_accounts"]
        }
        rows = [row for row in await self.truth("external-accounts") if row["status"] == "active"]
        numbers = {row["account_number"] for row in rows if row["id"] in shown}
        assert Counter(
            row["id"] for row in rows if row["account_number"] in numbers
        ) == dict.fromkeys(shown, 1)
        return shown

    async def _api(self, method: str, path: str, body: Any = None) -> Any:
        status, answer = await self._call(method, path, body, headers=self._headers)
        assert status == 200, f"{method} {path}: {status} {answer}"
        return answer


def _address(address: Row) -> Row:
    names = {"line1": "street_1", "line2": "street_2", "zip": "zip_code"}
    return {names.get(name, name): value for name, value in address.items()}
