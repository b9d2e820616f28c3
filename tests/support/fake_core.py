"""A small bank over real HTTP, in the test's own process: wires with idempotency keys, funds, faults and a feed.

It counts what it carried out apart from what it answered: `executed` is the truth that tests count against.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import random
import socket
import time
from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from decimal import Decimal
from itertools import count
from typing import Any

from aiohttp import web

from deploy.local.ports import LOOPBACK
from libs.contracts.wires import SendWire
from tests.support.accepting import stop_accepting

Answer = tuple[int, dict[str, Any]]

FAULTS = ("latency", "refuse", "error", "duplicate_reply", "fail_after_success", "accept_then_drop")


FEEDS = ("list_events", "list_wires")
"""What is read all the time, whatever a test does: no fault strikes it."""


class Dropped(Exception):
    """The connection is closed without an answer."""


@dataclass
class Account:
    available: Decimal = Decimal(0)
    held: Decimal = Decimal(0)
    restricted: bool = False
    closed: bool = False
    lowest: Decimal = Decimal(0)


@dataclass
class FakeCore:
    """Faults: probability by kind, for sends and questions alike, unless `only` names one operation."""

    token: str
    accounts: dict[str, Account] = field(default_factory=dict)
    linked: set[str] = field(default_factory=set)
    faults: dict[str, float] = field(default_factory=dict)
    only: str | None = None
    latency_seconds: float = 0.0
    finds_wires: bool = True
    """Wires can be found by their id, also when their keys are forgotten."""
    silent: bool = False
    """Tell the feed nothing."""
    completes_at_once: bool = False
    """Tell the feed of completion as soon as a wire is accepted, before the answer."""
    next_fault: str | None = None
    """Strikes the next send, and no other."""
    refusal_code: str | None = None
    """Refuse every wire for good, with this code."""
    executed: Counter[str] = field(default_factory=Counter)
    """How often each wire was carried out."""
    wires: dict[str, dict[str, Any]] = field(default_factory=dict)
    received: Counter[str] = field(default_factory=Counter)
    """Requests by operation."""
    unanswered: int = 0
    """Sends and questions that are not over yet, whether or not anybody still waits for their answers."""
    keys: dict[str, tuple[str, Answer]] = field(default_factory=dict)
    events: list[dict[str, Any]] = field(default_factory=list)
    gate: asyncio.Event = field(default_factory=asyncio.Event)
    """Sends wait until it is set."""
    _healed: asyncio.Event = field(default_factory=asyncio.Event)
    """Of the faults since it was made: ends what they delay."""
    _locks: defaultdict[str, asyncio.Lock] = field(
        default_factory=lambda: defaultdict(asyncio.Lock)
    )
    _positions: Iterator[int] = field(default_factory=lambda: count(int(time.time() * 1000)))
    """They go on from one bank of a test to the next one's, as those of one bank would."""

    def __post_init__(self) -> None:
        self.gate.set()

    def heal(self) -> None:
        """No fault from now on; what a fault delays goes on at once."""
        self.faults.clear()
        self.only = None
        self.latency_seconds = 0.0
        self.silent = False
        self.refusal_code = None
        self.gate.set()
        self._healed.set()
        self._healed = asyncio.Event()

    def carry_out_before(self, transaction_id: str, wire: SendWire) -> None:
        """As if it had carried out the wire in a past of which we know nothing any more."""
        body = {
            "account_id": wire.sending_account_id,
            "external_account_id": wire.external_account_id,
            "amount": f"{wire.amount:.2f}",
            "purpose": wire.purpose,
        }
        status, _ = self._carry_out(transaction_id, body)
        assert status == 200

    def forget_keys(self) -> None:
        self.keys.clear()

    def tell(self, kind: str, transaction_id: str, reason: str | None = None) -> None:
        """An entry of the feed."""
        if self.silent:
            return
        self.events.append(
            {
                "position": next(self._positions),
                "type": f"wire.{kind}",
                "transaction_id": transaction_id,
                "account_id": self.wires.get(transaction_id, {}).get("account_id", "acc_other"),
                "occurred_at": datetime.now(UTC).isoformat().replace("+00:00", "Z"),
                "reason": reason,
            }
        )

    def become(self, state: str, transaction_id: str, reason: str | None = None) -> None:
        """The wire is in the state from now on, and the feed tells it."""
        self.wires[transaction_id] |= {"state": state, "reason": reason}
        self.tell(state, transaction_id, reason)

    def application(self) -> web.Application:
        application = web.Application()
        application.router.add_post("/core/wires", self._endpoint("send_wire", self._send))
        application.router.add_get("/core/wires", self._endpoint("list_wires", self._newest))
        application.router.add_get(
            "/core/wires/{transaction_id}", self._endpoint("get_wire", self._wire)
        )
        application.router.add_get(
            "/core/operations/{key}", self._endpoint("get_operation", self._operation)
        )
        application.router.add_get("/core/events", self._endpoint("list_events", self._events))
        return application

    def _endpoint(
        self, name: str, perform: Callable[[web.Request], Awaitable[Answer]]
    ) -> Callable[[web.Request], Awaitable[web.Response]]:
        async def handle(request: web.Request) -> web.Response:
            assert request.headers["Authorization"] == f"Bearer {self.token}"
            self.received[name] += 1
            self.unanswered += name not in FEEDS
            try:
                await request.read()
                status, body = await self._under_faults(name, lambda: perform(request))
            except Dropped:
                if request.transport is not None:  # else the client has gone already
                    request.transport.abort()
                return web.Response()
            finally:
                self.unanswered -= name not in FEEDS
            return web.json_response(body, status=status)

        return handle

    def _strikes(self, name: str, kind: str) -> bool:
        if name == "send_wire" and kind == self.next_fault:
            self.next_fault = None
            return True
        if name in FEEDS or self.only not in (None, name):
            return False
        return random.random() < self.faults.get(kind, 0)

    async def _under_faults(self, name: str, perform: Callable[[], Awaitable[Answer]]) -> Answer:
        if name == "send_wire":
            await self.gate.wait()
        if self._strikes(name, "latency"):
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._healed.wait(), self.latency_seconds)
        if self._strikes(name, "refuse"):
            return refusal(422 if name == "send_wire" else 403, "refused")
        if self._strikes(name, "error"):
            return refusal(500, "internal_error")
        answer = await perform()
        if self._strikes(name, "duplicate_reply"):
            answer = await perform()
        if answer[0] < 400:
            if self._strikes(name, "fail_after_success"):
                return refusal(500, "internal_error")
            if self._strikes(name, "accept_then_drop"):
                raise Dropped
        return answer

    async def _send(self, request: web.Request) -> Answer:
        key = request.headers["Idempotency-Key"]
        text = await request.text()
        async with self._locks[key]:
            if key in self.keys:
                sent, answer = self.keys[key]
                return answer if sent == text else refusal(409, "idempotency_key_reused")
            await asyncio.sleep(0)
            answer = self._carry_out(key, json.loads(text))
            self.keys[key] = text, answer
        return answer

    def _carry_out(self, transaction_id: str, body: dict[str, Any]) -> Answer:
        assert set(body) == {"account_id", "external_account_id", "amount", "purpose"}
        assert isinstance(body["amount"], str)
        if self.refusal_code is not None:
            return refusal(409, self.refusal_code)
        amount = Decimal(body["amount"])
        account = self.accounts.get(body["account_id"])
        if account is None:
            return refusal(404, "not_found")
        if account.closed:
            return refusal(409, "account_closed")
        if account.restricted:
            return refusal(409, "account_restricted")
        if body["external_account_id"] not in self.linked:
            return refusal(409, "external_account_not_linked")
        if account.available < amount:
            return refusal(409, "insufficient_funds")
        account.available -= amount
        account.held += amount
        account.lowest = min(account.lowest, account.available)
        self.executed[transaction_id] += 1
        self.wires[transaction_id] = {**body, "state": "submitted"}
        self.tell("submitted", transaction_id)
        if self.completes_at_once:
            self.tell("completed", transaction_id)
        return 200, shown(transaction_id, self.wires[transaction_id])

    async def _operation(self, request: web.Request) -> Answer:
        known = self.keys.get(request.match_info["key"])
        if known is None:
            return refusal(404, "unknown_key")
        status, body = known[1]
        return 200, {"operation": "send_wire", "status": status, "body": body}

    async def _wire(self, request: web.Request) -> Answer:
        transaction_id = request.match_info["transaction_id"]
        wire = self.wires.get(transaction_id)
        if wire is None or not self.finds_wires:
            return refusal(404, "not_found")
        return 200, shown(transaction_id, wire)

    async def _newest(self, request: web.Request) -> Answer:
        assert request.query["order"] == "newest"
        newest = list(reversed(self.wires))[: int(request.query["limit"])]
        return 200, {"wires": [{"transaction_id": each} for each in newest], "next": None}

    async def _events(self, request: web.Request) -> Answer:
        after, limit = int(request.query["after"]), int(request.query["limit"])
        found = [event for event in self.events if event["position"] > after]
        return 200, {"events": found[:limit]}


def shown(transaction_id: str, wire: dict[str, Any]) -> dict[str, Any]:
    names = ("state", "amount", "account_id", "external_account_id", "reason")
    return {"transaction_id": transaction_id, **{name: wire.get(name) for name in names}}


def refusal(status: int, code: str) -> Answer:
    return status, {"error": {"code": code, "message": f"The bank says {code}."}}


@contextlib.asynccontextmanager
async def serving(core: FakeCore, port: int) -> AsyncIterator[None]:
    """The bank listens; outside of this it is down."""
    runner = web.AppRunner(core.application(), access_log=None, shutdown_timeout=0.5)
    await runner.setup()
    listener = socket.create_server((LOOPBACK, port), backlog=1024)
    try:
        await web.SockSite(runner, listener, backlog=1024).start()
        yield
    finally:
        await stop_accepting([listener])
        await runner.cleanup()
