"""The chapters about webhooks show what a receiver was told, and check it."""

from __future__ import annotations

import io
import time
from dataclasses import dataclass, field
from typing import Any

import aiohttp
import pytest
from aiohttp import web
from rich.console import Console

from libs.client.client import Client
from libs.client.transport import Transport
from libs.contracts.exact_json import decode, encode
from libs.demo import webhooks
from libs.demo.scene import Scene, StoryBroken
from libs.signing.webhook import key_of, signature_header
from tests.unit.client.answering import KEY, Gateway, gateway, success

AT = "2026-01-31T12:00:00.000000Z"
SUBSCRIPTION_ID = "0197a1c2-5a3e-7c11-9d54-3f2b1c0e8a77"
SECRET, OTHER_SECRET = ("whsec_" + letter * 43 + "=" for letter in "AE")
STEPS = ("wire.created", "wire.submitted", "wire.completed")


@dataclass
class Dispatcher:
    """The gateway, as far as subscriptions go, and what it delivers while the wire is sent."""

    types: tuple[str, ...] = STEPS
    signed_with: str = SECRET
    server: Gateway = field(init=False)
    callback_url: str = ""

    def answer(self) -> web.Response:
        asked = self.server.received[-1]
        if asked.method == "DELETE":
            return success(None)()
        if asked.target.endswith("/secret"):
            return success({"secret": SECRET, "previous_secret_expires_at": None})()
        body = decode(asked.body)
        self.callback_url = body["callback_url"]
        made: dict[str, Any] = {
            "subscription_id": SUBSCRIPTION_ID,
            "event_type": body["event_types"],
            "callback_url": self.callback_url,
            "description": body["description"],
            "status": "active",
            "created_at": AT,
            "updated_at": AT,
        }
        return success(made)()

    async def deliver(self, scene: Scene) -> None:
        for number, name in enumerate(self.types):
            event_id, timestamp = f"evt_{number}", str(int(time.time()))
            body = encode({"id": event_id, "type": name, "data": {"object": "wire"}})
            signatures = signature_header([key_of(self.signed_with)], event_id, timestamp, body)
            headers = {
                "webhook-id": event_id,
                "webhook-timestamp": timestamp,
                "webhook-signature": signatures,
            }
            async with scene.session.post(self.callback_url, data=body, headers=headers) as answer:
                await answer.read()


async def told(dispatcher: Dispatcher, monkeypatch: pytest.MonkeyPatch) -> str:
    output = io.StringIO()
    monkeypatch.setattr(webhooks, "send_a_wire", dispatcher.deliver)
    monkeypatch.setattr(webhooks, "DELIVERED_SECONDS", 0.2)
    async with gateway(dispatcher.answer) as server, aiohttp.ClientSession() as session:
        dispatcher.server = server
        client = Client(Transport(server.base_url, KEY, session))
        console = Console(file=output, soft_wrap=True)
        scene = Scene(client, session, server.base_url, lambda _: server.base_url, console)
        await webhooks.receive_events_of_a_wire(scene)
    return output.getvalue()


async def test_each_delivery_is_shown_verified_and_no_subscription_stays(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    dispatcher = Dispatcher()

    shown = await told(dispatcher, monkeypatch)

    lines = [line.split() for line in shown.splitlines() if line.endswith("verified")]
    assert lines == [[name, f"evt_{n}", "verified"] for n, name in enumerate(STEPS)]
    last = dispatcher.server.received[-1]
    assert (last.method, last.target) == (
        "DELETE",
        f"/customer/webhooks/subscriptions/{SUBSCRIPTION_ID}",
    )
    assert SECRET not in shown


@pytest.mark.parametrize(
    ("dispatcher", "sentence"),
    [
        (Dispatcher(types=STEPS[:2]), "Nothing was delivered of wire.completed"),
        (Dispatcher(signed_with=OTHER_SECRET), "3 deliveries were not signed"),
    ],
)
async def test_what_is_missing_or_not_genuine_breaks_the_story_and_no_subscription_stays(
    monkeypatch: pytest.MonkeyPatch, dispatcher: Dispatcher, sentence: str
) -> None:
    with pytest.raises(StoryBroken, match=sentence):
        await told(dispatcher, monkeypatch)

    assert dispatcher.server.received[-1].method == "DELETE"
