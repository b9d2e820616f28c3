"""The chapter about a wire checks what it shows."""

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
from libs.client.transport import Transport
from libs.contracts.exact_json import decode
from libs.demo import wires
from libs.demo.scene import Scene, StoryBroken
from tests.unit.client.answering import KEY, Gateway, gateway, problem, success

AT = "2026-01-31T12:00:00.000000Z"


@dataclass
class Bank:
    """The gateway, with one account and one wire."""

    ends: str = "completed"
    refused: str | None = None
    missing: Decimal = Decimal(0)
    server: Gateway = field(init=False)
    total: Decimal = Decimal("500.00")
    sent: dict[str, Any] = field(default_factory=dict)
    history: list[str] = field(default_factory=list)

    def answer(self) -> web.Response:
        asked = self.server.received[-1]
        if asked.target.startswith("/partner/reseller/accounts/balance/"):
            return self.balance()
        if asked.method == "POST":
            return self.send(decode(asked.body))
        if self.history[-1] == "submitted" and len(self.server.received) > 3:
            self.history.append(self.ends)
            if self.ends == "completed":
                self.total -= Decimal(self.sent["amount"]) + self.missing
        return success(self.wire())()

    def send(self, body: dict[str, Any]) -> web.Response:
        if self.refused:
            return problem(409, self.refused)()
        note = body.pop("purpose")
        self.sent = {"transaction_id": "0197a1c2-5a3e-7c11-9d54-3f2b1c0e8a77", **body, "note": note}
        self.history = ["pending_submission", "submitted"]
        return success(self.sent)()

    def wire(self) -> dict[str, Any]:
        steps = [{"state": state, "at": AT, "reason": None} for state in self.history]
        state = self.history[-1]
        more = {"state": state, "reason": None, "history": steps}
        return {**self.sent, **more, "created_at": AT, "updated_at": AT}

    def balance(self) -> web.Response:
        money = {"amount": self.total, "currency": "USD"}
        return success(
            {
                "account_id": "acc_1",
                "account_number": "000000000001",
                "available_balance": money,
                "held_balance": {"amount": 0, "currency": "USD"},
                "total_balance": money,
                "system_timestamp": AT,
            }
        )()


async def told(bank: Bank) -> str:
    output = io.StringIO()
    async with gateway(bank.answer) as server, aiohttp.ClientSession() as session:
        bank.server = server
        client = Client(Transport(server.base_url, KEY, session))
        console = Console(file=output, soft_wrap=True)
        scene = Scene(client, session, server.base_url, lambda _: server.base_url, console)
        scene.facts = {"account_id": "acc_1", "external_account_id": "ext_1"}
        await wires.send_a_wire(scene)
    return output.getvalue()


async def test_the_wire_is_followed_to_its_completion() -> None:
    shown = await told(Bank())

    assert "POST /customer/wire  200" in shown
    assert [word for word in shown.split() if word in {"submitted", "completed"}] == [
        "submitted",
        "completed",
    ]


@pytest.mark.parametrize(
    ("bank", "sentence"),
    [
        (Bank(ends="rejected"), "The wire is rejected"),
        (Bank(missing=Decimal("0.01")), "less than before"),
        (Bank(refused="insufficient_funds"), "failed: 409 insufficient_funds"),
    ],
)
async def test_what_is_not_as_it_should_be_breaks_the_story(bank: Bank, sentence: str) -> None:
    with pytest.raises(StoryBroken, match=sentence):
        await told(bank)
