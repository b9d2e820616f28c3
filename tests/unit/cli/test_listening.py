"""`bankside listen`, as it is typed, against a gateway with prepared answers."""

from __future__ import annotations

import asyncio
import json
import re
import signal
import socket
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import aiohttp
import pytest
from aiohttp import web

from deploy.local.ports import LOOPBACK
from libs.contracts.exact_json import decode
from libs.signing.webhook import key_of, sign
from tests.support.receivers import Received, receiver, replies
from tests.unit.cli.running import Running
from tests.unit.client.answering import HANG, Gateway, gateway, problem, success

SECRET = "whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY="
ID = "0199f3a0-0000-7000-8000-000000000001"
BODY = b'{"id":"evt_1","type":"wire.completed","data":{"object":"wire","transaction_id":"0199-w"}}'
MADE = success(
    {
        "subscription_id": ID,
        "event_type": "*",
        "callback_url": "http://127.0.0.1/",
        "description": "bankside listen",
        "status": "active",
        "created_at": "2026-03-01T12:00:00Z",
        "updated_at": "2026-03-01T12:00:00Z",
    }
)
THE_SECRET = success({"secret": SECRET, "previous_secret_expires_at": None})
DELETED = success(None)
NOT_HERE = {"detail": [{"loc": ["body", "callback_url"], "msg": "No.", "type": "value_error"}]}


class Command(Running):
    """`bankside listen`."""

    def __init__(self, folder: Path, base_url: str, *arguments: str) -> None:
        super().__init__(folder, base_url, "listen", *arguments)
        self.url = ""

    async def listens(self) -> None:
        """Return once it has said where, which `url` is from then on."""
        self.url = (await self.said(r"http://127\.0\.0\.1:\d+/"))[0]
        self.forget()

    async def interrupt(self) -> tuple[int, str]:
        """As `ended`, by Ctrl-C."""
        self.signal(signal.SIGINT)
        return await self.ended()


@asynccontextmanager
async def listening(folder: Path, base_url: str, *arguments: str) -> AsyncIterator[Command]:
    command = Command(folder, base_url, *arguments)
    try:
        await command.listens()
        yield command
    finally:
        command.kill()


async def deliver(url: str, body: bytes = BODY, *, signed: bytes = BODY) -> tuple[int, str]:
    timestamp = str(int(time.time()))
    headers = {
        "Content-Type": "application/json",
        "webhook-id": "evt_1",
        "webhook-timestamp": timestamp,
        "webhook-signature": sign(key_of(SECRET), "evt_1", timestamp, signed),
    }
    async with (
        aiohttp.ClientSession() as session,
        session.post(url, data=body, headers=headers) as response,
    ):
        return response.status, await response.text()


def requests(server: Gateway) -> list[tuple[str, str]]:
    return [(request.method, request.target) for request in server.received]


async def test_it_subscribes_shows_what_comes_and_deletes_its_subscription_on_ctrl_c(
    tmp_path: Path,
) -> None:
    async with (
        gateway(MADE, THE_SECRET, DELETED) as server,
        listening(tmp_path, server.base_url) as command,
    ):
        genuine = await deliver(command.url)
        shown = await command.line()
        forged = await deliver(command.url, b"{}")
        refused = await command.line()
        status, err = await command.interrupt()

    base = "/partner/reseller/webhooks/subscriptions"
    assert requests(server) == [
        ("POST", base),
        ("GET", f"{base}/{ID}/secret"),
        ("DELETE", f"{base}/{ID}"),
    ]
    assert decode(server.received[0].body) == {
        "event_types": "*",
        "callback_url": command.url,
        "description": "bankside listen",
    }
    assert genuine == (200, "")
    assert re.fullmatch(
        r"\d\d:\d\d:\d\dZ  wire\.completed +  wire 0199-w  evt_1  ok  200\n", shown
    ), shown
    assert forged[0] == 400
    assert "invalid: no signature in webhook-signature is by this secret  400" in refused
    assert (status, err) == (0, "The subscription is deleted.\n")


async def test_a_customers_key_subscribes_for_the_customer(tmp_path: Path) -> None:
    wrong = problem(403, "wrong_route_family")
    async with (
        gateway(wrong, MADE, THE_SECRET, DELETED) as server,
        listening(tmp_path, server.base_url, "--event-type", "wire") as command,
    ):
        status, _ = await command.interrupt()

    base = "/customer/webhooks/subscriptions"
    assert status == 0
    assert requests(server)[1:] == [
        ("POST", base),
        ("GET", f"{base}/{ID}/secret"),
        ("DELETE", f"{base}/{ID}"),
    ]
    assert decode(server.received[1].body)["event_types"] == "wire"


async def test_genuine_deliveries_are_forwarded_unchanged_and_answered_alike(
    tmp_path: Path,
) -> None:
    async with (
        receiver(replies(503, b"later", {"Retry-After": "7"})) as local,
        gateway(MADE, THE_SECRET, DELETED) as server,
        listening(
            tmp_path, server.base_url, "--forward", local.url("/hook?a=%20b"), "--json"
        ) as command,
    ):
        answered = await deliver(command.url)
        shown = json.loads(await command.line())
        await deliver(command.url, b"{}")
        await command.line()
        await command.interrupt()

    (request,) = local.requests
    assert (request.method, request.target, request.body) == ("POST", "/hook?a=%20b", BODY)
    assert request.headers["webhook-id"] == "evt_1"
    assert {"webhook-timestamp", "webhook-signature"} <= request.headers.keys()
    assert answered == (503, "later")
    assert (shown["verified"], shown["status"], shown["type"]) == (True, 503, "wire.completed")


async def test_an_answer_that_comes_in_pieces_is_handed_on_whole(tmp_path: Path) -> None:
    async def answer_in_pieces(_: Received, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 500 No\r\nContent-Length: 12\r\n\r\nfirst ")
        await asyncio.wait({delivering}, timeout=0.5)  # by then the first piece had been handed on
        writer.write(b"second")

    async with (
        receiver(answer_in_pieces) as local,
        gateway(MADE, THE_SECRET, DELETED) as server,
        listening(tmp_path, server.base_url, "--forward", local.url()) as command,
    ):
        delivering = asyncio.create_task(deliver(command.url))
        answered = await delivering
        await command.interrupt()

    assert answered == (500, "first second")


async def test_a_forward_that_cannot_be_reached_is_502(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind((LOOPBACK, 0))  # and not listening, so that no other process can
        gone = f"http://{LOOPBACK}:{taken.getsockname()[1]}/"
        async with (
            gateway(MADE, THE_SECRET, DELETED) as server,
            listening(tmp_path, server.base_url, "--forward", gone) as command,
        ):
            answered = await deliver(command.url)
            shown = await command.line()
            await command.interrupt()

    assert answered == (502, "no process listens there\n")
    assert shown.endswith("ok  502 (no process listens there)\n")


async def test_a_terminal_is_not_steered_by_what_comes(tmp_path: Path) -> None:
    body = b'{"type":"\\u001b[31mred","data":{"object":"x\\n","x_id":"[bold]"}}'
    async with (
        gateway(MADE, THE_SECRET, DELETED) as server,
        listening(tmp_path, server.base_url) as command,
    ):
        await deliver(command.url, body)
        shown = await command.line()
        await command.interrupt()

    assert "\x1b" not in shown
    assert "[bold]" in shown or "x�" in shown


@pytest.mark.parametrize(
    ("arguments", "answer", "said"),
    [
        (("--forward", "localhost:3000"), MADE, "--forward is an http or https URL"),
        (("--event-type", "wires"), MADE, "--event-type: Input should be '*',"),
        (("--port", "70000"), MADE, "--port is 1 to 65535"),
        (
            (),
            lambda: web.json_response(NOT_HERE, status=422),
            "BANKSIDE_CALLBACK_ALLOW=127.0.0.1:*",
        ),
        ((), problem(401, "unknown_subscription_key"), "says: No."),
    ],
)
async def test_a_mistake_is_one_sentence(
    tmp_path: Path, arguments: tuple[str, ...], answer: object, said: str
) -> None:
    async with gateway(answer) as server:  # type: ignore[arg-type]
        command = Command(tmp_path, server.base_url, *arguments)
        status, err = await command.ended()

    assert (status, command.out) == (2, "")
    assert said in err
    assert len(err.splitlines()) == 1


async def test_a_port_that_is_taken_is_said_before_anything_is_subscribed(tmp_path: Path) -> None:
    async with receiver() as taken, gateway(MADE) as server:
        status, err = await Command(tmp_path, server.base_url, "--port", str(taken.port)).ended()

    assert status == 2
    assert err == f"bankside: Cannot listen on port {taken.port}: Address already in use.\n"
    assert server.received == []


@pytest.mark.parametrize("signum", [signal.SIGINT, signal.SIGTERM], ids=lambda signum: signum.name)
async def test_it_ends_at_once_while_the_gateway_has_not_answered_yet(
    tmp_path: Path, signum: signal.Signals
) -> None:
    async with gateway(HANG) as server:
        command = Command(tmp_path, server.base_url)
        await server.has_received(1)
        command.signal(signum)
        status, err = await command.ended()

    assert (status, command.out) == (3, "")
    assert err == (
        "bankside: The subscription may have been made, as the gateway had not answered yet. "
        "Look for it with `bankside call GET /partner/reseller/webhooks/subscriptions`.\n"
    )


async def test_a_subscription_whose_secret_does_not_come_is_deleted(tmp_path: Path) -> None:
    async with gateway(MADE, HANG, DELETED) as server:
        command = Command(tmp_path, server.base_url)
        await server.has_received(2)
        status, err = await command.interrupt()

    assert (status, err) == (0, "The subscription is deleted.\n")
    assert requests(server)[-1][0] == "DELETE"


async def test_a_second_ctrl_c_ends_a_deletion_that_is_not_answered(tmp_path: Path) -> None:
    async with (
        gateway(MADE, THE_SECRET, HANG) as server,
        listening(tmp_path, server.base_url) as command,
    ):
        command.signal(signal.SIGINT)
        await server.has_received(3)
        status, err = await command.interrupt()

    assert status == 3
    assert err == (
        "bankside: The subscription may not be deleted, as the gateway does not answer. "
        f"Try `bankside call DELETE /partner/reseller/webhooks/subscriptions/{ID}`.\n"
    )


async def test_a_fault_leaves_open_whether_there_is_a_subscription(tmp_path: Path) -> None:
    fault = problem(500, "internal_error")
    async with gateway(fault) as server:
        making = await Command(tmp_path, server.base_url).ended()
    async with gateway(MADE, fault, DELETED) as server:
        reading = await Command(tmp_path, server.base_url).ended()
    async with (
        gateway(MADE, THE_SECRET, fault) as server,
        listening(tmp_path, server.base_url) as command,
    ):
        deleting = await command.interrupt()

    subscriptions = "/partner/reseller/webhooks/subscriptions"
    assert (making[0], reading[0], deleting[0]) == (3, 2, 3)
    assert (
        f"may have been made: No. Look for it with `bankside call GET {subscriptions}`" in making[1]
    )
    assert f"not be deleted: No. Try `bankside call DELETE {subscriptions}/{ID}`" in deleting[1]
