"""Requests on their way when a listener stops."""

from __future__ import annotations

import asyncio
import socket
import ssl
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from aiohttp import web

from deploy.local.ports import LOOPBACK
from libs.runtime.connections import Connections
from libs.runtime.process import Process
from libs.tls import client_context
from services.gateway.endpoint import Endpoints
from services.gateway.listener import Listener
from services.gateway.listening import ListenAt
from services.gateway.settings import Settings
from tests.support.certificates import Authority
from tests.support.pace import pace
from tests.support.ports import free_ports

REQUEST = b"POST / HTTP/1.1\r\nHost: here\r\nContent-Length: 4\r\n\r\n"


def listener_at(
    port: int, begun: asyncio.Event, encryption: ssl.SSLContext | None = None
) -> Listener:
    """It answers each request with its body. The event is set when the headers of one have arrived."""
    settings = SimpleNamespace(
        connections_per_address=8,
        stalled_seconds=60.0,
        longest_drain_seconds=10.0 * pace(),
        answering_seconds=10.0 * pace(),
    )

    async def echo(request: web.Request) -> web.Response:
        begun.set()
        return web.Response(body=await request.read())

    def application(_: Endpoints, connections: Connections) -> web.Application:
        made = web.Application(middlewares=[connections.middleware])
        made.router.add_post("/", echo)
        return made

    return Listener(
        cast(Settings, settings),
        ListenAt(LOOPBACK, port, "PASSED_ON"),
        application,
        cast(Endpoints, SimpleNamespace(counted_peer=lambda peer: peer)),
        encryption,
        in_all=64,
    )


@pytest.mark.parametrize(("drain", "shutdown"), [(1.0, 15.0), (60.0, 15.0), (0.0, 0.3)])
def test_requests_that_take_all_their_time_leave_some_for_the_end_of_a_stop(
    drain: float, shutdown: float
) -> None:
    known: dict[str, Any] = {"drain_seconds": drain, "shutdown_seconds": shutdown}
    settings = Settings.model_construct(**known)

    before_the_end = 2 * settings.longest_drain_seconds + settings.answering_seconds

    assert settings.answering_seconds > 0
    assert before_the_end <= 0.95 * shutdown


async def test_a_body_that_is_still_arriving_is_waited_for() -> None:
    [port] = free_ports(1)
    begun = asyncio.Event()
    listener = listener_at(port, begun)
    async with asyncio.timeout(20 * pace()):
        async with listener.listening(Process("tests")):
            reader, writer = await asyncio.open_connection(LOOPBACK, port)
            writer.write(REQUEST + b"bo")
            await begun.wait()

        closing = asyncio.create_task(listener.close())
        await asyncio.sleep(0.1)
        writer.write(b"dy")
        answer = await reader.read()
        await closing
        writer.close()

    assert answer.startswith(b"HTTP/1.1 200")
    assert answer.endswith(b"body")


async def test_a_handshake_under_way_and_the_request_after_it_are_waited_for(
    tmp_path: Path,
) -> None:
    [port] = free_ports(1)
    authority = Authority(tmp_path)
    trusted = client_context(authority.file)
    listener = listener_at(port, asyncio.Event(), authority.identity().context())
    async with asyncio.timeout(20 * pace()):
        async with listener.listening(Process("tests")):
            accepted = socket.create_connection((LOOPBACK, port))
            _, another = await asyncio.open_connection("localhost", port, ssl=trusted)
            another.transport.abort()  # it was accepted after the first one

        closing = asyncio.create_task(listener.close())
        await asyncio.sleep(0.1)
        reader, writer = await asyncio.open_connection(
            sock=accepted, ssl=trusted, server_hostname="localhost"
        )
        writer.write(REQUEST + b"body")
        answer = await reader.read()
        await closing
        writer.close()

    assert answer.startswith(b"HTTP/1.1 200")
    assert answer.endswith(b"body")
