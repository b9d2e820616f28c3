"""Speaking to the sandbox over HTTP, as an adapter and as a test would."""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from typing import Any

import aiohttp

from tests.support.pace import pace
from tests.support.provider_calls import Tokens, authorization, bearer

TIMEOUT_SECONDS = 30.0

ADDRESS = {"street_1": "1 Main St", "city": "Reno", "state": "NV", "zip_code": "89501"}


@dataclass(frozen=True)
class Reply:
    status: int
    body: Any
    replayed: bool

    @property
    def code(self) -> str:
        code: str = self.body["error"]["code"]
        return code


@dataclass(frozen=True)
class Opened:
    """A business with an open account at core banking."""

    customer_id: str
    core_id: str
    account_id: str


def new_key() -> str:
    return uuid.uuid4().hex


class Bank:
    """The session is bound to one event loop; the sandbox is not."""

    def __init__(self, session: aiohttp.ClientSession, url: str, tokens: Tokens) -> None:
        self._session = session
        self._url = url
        self._tokens = tokens

    def authorization(self, method: str, path: str) -> dict[str, str]:
        """Of a caller who may do this."""
        return authorization(self._tokens, method, path)

    async def call(
        self, method: str, path: str, *, headers: dict[str, str] | None = None, **options: Any
    ) -> Reply:
        """Any request. Raises aiohttp.ClientError when the connection breaks."""
        async with self._session.request(
            method,
            self._url + path,
            headers=self.authorization(method, path) if headers is None else headers,
            timeout=aiohttp.ClientTimeout(TIMEOUT_SECONDS * pace()),
            **options,
        ) as response:
            replayed = response.headers.get("Idempotent-Replayed") == "true"
            return Reply(response.status, await response.json(), replayed)

    async def get(self, path: str, **parameters: Any) -> Reply:
        return await self.call("GET", path, params=parameters)

    async def wire_operation(self, key: str) -> Reply:
        """What became of the key, as told to the one caller who sends wires."""
        headers = bearer(self._tokens["payments"]["core"])
        return await self.call("GET", f"/core/operations/{key}", headers=headers)

    async def write(
        self, path: str, body: object, *, key: str | None = None, method: str = "POST"
    ) -> Reply:
        headers = self.authorization(method, path) | {"Idempotency-Key": key or new_key()}
        return await self.call(method, path, headers=headers, json=body)

    async def done(self, path: str, body: object, *, method: str = "POST") -> Any:
        """A write that has to succeed; its body."""
        reply = await self.write(path, body, method=method)
        assert reply.status == 200, reply
        return reply.body

    async def simulate(self, path: str, body: object | None = None) -> Reply:
        return await self.call("POST", f"/simulate/{path}", headers={}, json=body or {})

    async def truth(self, path: str, **parameters: str) -> Any:
        reply = await self.call("GET", f"/truth/{path}", headers={}, params=parameters)
        assert reply.status == 200, reply
        return reply.body

    async def events(self, api: str) -> list[dict[str, Any]]:
        """All that the feed of an API tells."""
        events: list[dict[str, Any]] = []
        while True:
            after = events[-1]["position"] if events else 0
            page = (await self.get(f"/{api}/events", after=after, limit=500)).body["events"]
            if not page:
                return events
            events += page

    async def fault(self, api: str, kind: str, **rest: object) -> Reply:
        rule = {"api": api, "kind": kind, "operation": "*"} | rest
        return await self.call("PUT", "/faults", headers={}, json=rule)

    async def open_account(self, name: str = "Acme") -> Opened:
        customer_id = str(uuid.uuid4())
        customer = await self.done("/core/customers", business(customer_id, business_name=name))
        account = await self.done(
            "/core/accounts",
            {"core_id": customer["core_id"], "account_group": "deposit", "account_title": "Main"},
        )
        return Opened(customer_id, customer["core_id"], account["account_id"])

    async def deposit(self, account_id: str, amount: object) -> Reply:
        body = {"account_id": account_id, "amount": amount, "counterparty_name": "Jane Roe"}
        return await self.simulate("deposits", body)


def business(customer_id: str, *, ein: str = "12-3456789", **fields: object) -> dict[str, object]:
    """The body of a create at the identity provider and at core banking."""
    return {
        "customer_id": customer_id,
        "kind": "business",
        "business_customer_id": None,
        "fields": {
            "business_name": "Acme",
            "dba": None,
            "ein": ein,
            "business_address": ADDRESS,
            **fields,
        },
    }


def external_account(core_id: str, number: str, *, primary: bool = True) -> dict[str, object]:
    return {
        "core_id": core_id,
        "bank_name": "First Bank",
        "name_on_account": "Acme",
        "routing_number": "021000021",
        "account_number": number,
        "address_on_account": ADDRESS,
        "primary": primary,
    }
