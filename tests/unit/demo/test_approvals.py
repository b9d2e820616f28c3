"""The chapter about an approval leaves the customer as it was."""

from __future__ import annotations

import io
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

import aiohttp
import pytest
from aiohttp import web
from rich.console import Console

from libs.client.client import Client
from libs.client.credentials import Credentials
from libs.client.transport import Transport
from libs.contracts.exact_json import decode
from libs.demo import approvals
from libs.demo.scene import Scene
from tests.unit.client.answering import KEY, Gateway, gateway, problem, success

AT = "2026-01-31T12:00:00.000000Z"
POLICY = {
    "per_wire_limit": Decimal("5000.00"),
    "daily_limit": None,
    "daily_count": 20,
    "approval_threshold": None,
    "new_payee_hours": None,
}


@dataclass
class Bank:
    """The gateway, with one customer, its policy and one wire."""

    policy: dict[str, Any] = field(default_factory=lambda: dict(POLICY))
    server: Gateway = field(init=False)
    sent: dict[str, Any] = field(default_factory=dict)
    history: list[str] = field(default_factory=list)

    def answer(self) -> web.Response:
        asked = self.server.received[-1]
        body = decode(asked.body) if asked.body else {}
        match asked.method, asked.target.rpartition("/")[2]:
            case "PUT", "wire-policy":
                self.policy = dict.fromkeys(POLICY) | body
            case "POST", "wire":
                note = body.pop("purpose")
                self.sent = {"transaction_id": "0197a1c2-5a3e-7c11-9d54-3f2b1c0e8a77", **body}
                self.sent["note"] = note
                self.history = ["pending_approval"]
                return success(self.sent)()
            case "POST", "approve":
                if sum(each.target.endswith("/approve") for each in self.server.received) == 1:
                    return problem(403, "approver_is_initiator")()
                self.history += ["pending_submission", "submitted", "completed"]
        if asked.target.endswith("/wire-policy"):
            return success({"customer_id": "c-1", **self.policy, "updated_at": AT})()
        return success(self.wire())()

    def wire(self) -> dict[str, Any]:
        steps = [{"state": state, "at": AT, "reason": None} for state in self.history]
        more = {"state": self.history[-1], "reason": None, "history": steps}
        return {**self.sent, **more, "created_at": AT, "updated_at": AT}


async def made_key(_: str) -> Credentials:
    return KEY


async def test_the_policy_of_the_customer_is_put_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(approvals, "customer_credentials", made_key)
    bank = Bank()

    async with gateway(bank.answer) as server, aiohttp.ClientSession() as session:
        bank.server = server
        client = Client(Transport(server.base_url, KEY, session))
        console = Console(file=io.StringIO(), soft_wrap=True)
        scene = Scene(client, session, server.base_url, lambda _: server.base_url, console)
        scene.facts = {"customer_id": "c-1", "account_id": "acc_1", "external_account_id": "ext_1"}
        await approvals.approve_a_wire(scene)

    thresholds = [
        decode(each.body).get("approval_threshold")
        for each in bank.server.received
        if each.method == "PUT"
    ]
    assert thresholds == [approvals.THRESHOLD, None]
    assert bank.policy == POLICY
