"""How the console listens, and how it ends: as a load balancer needs it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from aiohttp import ClientSession
from prometheus_client import REGISTRY
from structlog.testing import capture_logs

from deploy.local.ports import LOOPBACK
from libs.contracts.operating.sessions import GET_SESSION
from libs.contracts.principal import Role
from libs.runtime.connections import Connections
from libs.runtime.process import Process
from libs.tls import client_context
from services.console.app import serve
from tests.support.certificates import Authority
from tests.support.pace import pace
from tests.support.ports import free_ports
from tests.support.waiting import eventually
from tests.unit.console.browser import settings
from tests.unit.console.gateway_double import TOKEN
from tests.unit.console.samples import gateway

UNKNOWN = "/static/nothing"
"""Is answered without the gateway and without a session."""


@asynccontextmanager
async def listening(**changes: Any) -> AsyncIterator[tuple[str, asyncio.Event, asyncio.Task[None]]]:
    """Its origin, what tells it to end, and the task of its life."""
    [port] = free_ports(1)
    configured = settings(port=port, public_url=f"http://{LOOPBACK}:{port}", **changes)
    is_listening, told_to_end = asyncio.Event(), asyncio.Event()

    async def live() -> None:
        async with serve(configured, Process("console")):
            is_listening.set()
            await told_to_end.wait()

    console = asyncio.create_task(live())
    await is_listening.wait()
    try:
        yield f"http://{LOOPBACK}:{port}", told_to_end, console
    finally:
        told_to_end.set()
        await console


async def test_a_console_that_ends_goes_on_answering_and_closes_each_connection(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    looked, seconds = asyncio.Event(), list[float]()

    async def until_looked(connections: Connections, longest: float) -> None:
        connections.is_draining = True
        seconds.append(longest)
        await looked.wait()

    monkeypatch.setattr(Connections, "drain", until_looked)
    async with AsyncExitStack() as opened:
        origin, told_to_end, console = await opened.enter_async_context(listening(drain_seconds=3))
        session = await opened.enter_async_context(ClientSession())
        opened.callback(looked.set)

        async def connection_after_answer() -> str:
            async with session.get(f"{origin}{UNKNOWN}") as response:
                assert response.status == 404
                return response.headers.get("Connection", "keep-alive")

        before = await connection_after_answer()
        told_to_end.set()
        await asyncio.sleep(0)

        after = [await connection_after_answer() for _ in range(3)]
        was_draining = not console.done()

    assert seconds == [3]
    assert before == "keep-alive"
    assert after == ["close"] * 3
    assert was_draining


async def test_a_form_that_is_compressed_is_refused_and_inflated_by_nobody() -> None:
    async with listening() as (origin, _, _):
        host = origin.removeprefix("http://")
        reader, writer = await asyncio.open_connection(*host.split(":"))
        head = (
            f"Host: {host}\r\nOrigin: {origin}\r\nContent-Encoding: gzip\r\nContent-Length: 7\r\n"
        )
        kind = "Content-Type: application/x-www-form-urlencoded\r\n\r\n"
        writer.write(f"POST /login HTTP/1.1\r\n{head}{kind}no gzip".encode())
        refused = await reader.readuntil(b"\r\n\r\n")
        # Who inflates it finds that it is none, and gives the connection up.
        writer.write(f"GET {UNKNOWN} HTTP/1.1\r\nHost: {host}\r\n\r\n".encode())
        then = await reader.readuntil(b"HTTP/1.1 404")
        writer.transport.abort()

    assert refused.startswith(b"HTTP/1.1 415")
    assert then


def unfinished_form(origin: str, path: str, *more: str) -> bytes:
    """The beginning of a form."""
    lines = [
        f"POST {path} HTTP/1.1",
        f"Host: {origin.removeprefix('http://')}",
        f"Origin: {origin}",
        f"Cookie: bankside-session={TOKEN}",
        "Content-Type: application/x-www-form-urlencoded",
        "Content-Length: 1000",
        *more,
    ]
    return "\r\n".join([*lines, "", "csrf="]).encode()


async def test_forms_of_a_session_that_do_not_end_make_room_for_a_browser(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    double = gateway(Role.VIEWER)
    monkeypatch.setattr("services.console.app.SignedGateway", lambda *_: double)
    monkeypatch.setattr("services.console.app.CONNECTIONS_PER_ADDRESS", 4)
    async with listening() as (origin, _, _), asyncio.timeout(20 * pace()):
        address = origin.removeprefix("http://").split(":")
        held = [await asyncio.open_connection(*address) for _ in range(4)]
        for reader, writer in held:
            writer.write(unfinished_form(origin, "/wires/1/resolve", "Expect: 100-continue"))
            await reader.readuntil(b"100 Continue\r\n\r\n")  # the console waits for its form
        async with ClientSession() as session, session.get(f"{origin}{UNKNOWN}") as answer:
            status = answer.status
        ended = await held[0][0].read()
        for _, writer in held:
            writer.transport.abort()

    assert [name for name, _, _ in double.asked] == [GET_SESSION.name]
    assert status == 404
    assert ended == b""


@pytest.mark.parametrize("path", ["/login", "/wires/1/resolve"])
async def test_a_form_that_does_not_arrive_in_time_is_answered(
    path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("services.console.app.SignedGateway", lambda *_: gateway(Role.VIEWER))
    monkeypatch.setattr("services.console.security.FORM_SECONDS", 0.05)
    async with listening() as (origin, _, _), asyncio.timeout(20 * pace()):
        reader, writer = await asyncio.open_connection(*origin.removeprefix("http://").split(":"))
        writer.write(unfinished_form(origin, path))
        answer = await reader.readuntil(b"\r\n\r\n")
        writer.transport.abort()

    assert answer.startswith(b"HTTP/1.1 408")


async def test_a_browser_that_goes_away_while_its_form_arrives_is_no_failure() -> None:
    with capture_logs() as logs:
        async with listening() as (origin, _, _), asyncio.timeout(20 * pace()):
            address = origin.removeprefix("http://").split(":")
            reader, writer = await asyncio.open_connection(*address)
            writer.write(unfinished_form(origin, "/login", "Expect: 100-continue"))
            await reader.readuntil(b"100 Continue\r\n\r\n")
            writer.transport.abort()

            async def is_gone() -> bool:
                return REGISTRY.get_sample_value("bankside_http_connections") == 0

            await eventually("the connection is gone", is_gone)
            async with ClientSession() as session, session.get(f"{origin}{UNKNOWN}") as after:
                assert after.status == 404

    assert [line for line in logs if line["log_level"] == "error"] == []


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/login", 200),
        ("GET", UNKNOWN, 404),
        ("GET", f"{UNKNOWN}%0A", 404),
        ("PUT", "/login", 405),
    ],
)
async def test_what_is_expected_changes_no_answer_and_no_bound(
    method: str, path: str, status: int
) -> None:
    async with listening() as (origin, _, _), asyncio.timeout(20 * pace()):
        host = origin.removeprefix("http://")
        reader, writer = await asyncio.open_connection(*host.split(":"))
        head = f"{method} {path} HTTP/1.1\r\nHost: {host}\r\nOrigin: {origin}\r\n".encode()
        writer.write(head + b"Expect: more\r\n\r\n" + head)  # one whole, and a part of one
        answer = await reader.read()
        writer.transport.abort()

    assert answer.startswith(b"HTTP/1.1 %d " % status)
    assert b"Connection: close" in answer


async def test_connections_that_shake_no_hands_make_room_for_a_browser(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("services.console.app.CONNECTIONS", 16)
    monkeypatch.setattr("services.console.app.STALLED_SECONDS", 600.0)
    authority = Authority(tmp_path)
    identity = authority.identity()
    async with (
        listening(
            tls_certificate_file=identity.certificate_file, tls_key_file=identity.key_file
        ) as (origin, _, _),
        asyncio.timeout(20 * pace()),
    ):
        address = origin.removeprefix("http://").split(":")
        silent = [await asyncio.open_connection(*address) for _ in range(8)]
        ended = [await reader.read() for reader, _ in silent[:4]]
        context = client_context(authority.file)
        async with (
            ClientSession() as session,
            session.get(f"https://localhost:{address[1]}{UNKNOWN}", ssl=context) as answer,
        ):
            status = answer.status
        for _, writer in silent:
            writer.transport.abort()

    assert ended == [b""] * 4
    assert status == 404
