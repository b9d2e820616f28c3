"""Connections of callers: their bounds, and what becomes of them while their process ends."""

from __future__ import annotations

import asyncio
import random
import re
import socket
import ssl
from asyncio.trsock import TransportSocket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import cast

import pytest
from aiohttp import ClientSession, web
from aiohttp.typedefs import Handler
from prometheus_client import REGISTRY

from deploy.local.ports import LOOPBACK
from libs.runtime import connections as connections_module
from libs.runtime.accepting import accepting, bound_at, until_arrived
from libs.runtime.acknowledged_bytes import acknowledged_bytes
from libs.runtime.connections import (
    MOST_AHEAD_BYTES,
    MOST_EMPTY_BYTES,
    MOST_HEAD_BYTES,
    Connections,
)
from libs.runtime.handshakes import Handshakes
from libs.runtime.process import Process
from libs.runtime.request_heads import RequestHeads
from libs.runtime.unread_answers import MOST_BYTES_OF_ADDRESS
from libs.tls import client_context
from tests.support.certificates import Authority
from tests.support.pace import pace
from tests.support.waiting import eventually

GET = b"GET / HTTP/1.1\r\nHost: here\r\n\r\n"
POST = b"POST / HTTP/1.1\r\nHost: here\r\nContent-Length: 20000\r\n\r\n" + b" " * 20_000
ENDS_A_LINE = b"POST / HTTP/1.1\r\nHost: here\r\nContent-Length: 3\r\n\r\nx\r\n"
UPGRADE = b"GET / HTTP/1.1\r\nHost: here\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\r\n"
IN_CHUNKS = (
    b"POST / HTTP/1.1\r\nHost: here\r\nTransfer-Encoding: chunked\r\n\r\n1\r\n{\r\n0\r\n\r\n"
)


async def answer(_: web.Request) -> web.Response:
    return web.Response()


async def read_body(request: web.Request) -> web.Response:
    await request.read()
    return web.Response()


def head_of(size: int) -> bytes:
    """A head without its end, of so many bytes."""
    headers = b"".join(b"X-%d: %s\r\n" % (number, b"a" * 4000) for number in range(size // 4000))
    return (GET[:-2] + headers + b"X-Last: ").ljust(size, b"a")[: size - 1] + b"a"


@asynccontextmanager
async def listening(
    handler: Handler, *, stalled_seconds: float = 10, encryption: ssl.SSLContext | None = None
) -> AsyncIterator[tuple[Connections, tuple[str, int]]]:
    """Connections that are accepted at this address and whose requests this handler answers."""
    connections = Connections(str, per_address=8, in_all=8, stalled_seconds=stalled_seconds)
    application = web.Application(middlewares=[connections.middleware])
    application.router.add_route("*", "/", handler)
    runner = web.AppRunner(application)
    await runner.setup()
    assert runner.server is not None
    protocols = connections.protocols(runner.server)
    handshakes = (
        Handshakes(encryption, str, per_address=8, in_all=8, seconds=20 * pace())
        if encryption is not None
        else None
    )
    [accepts] = await bound_at(LOOPBACK, 0)
    async with accepting(Process("tests"), [accepts], protocols, handshakes):
        yield connections, accepts.getsockname()
    await runner.cleanup()


@dataclass
class Clock:
    """Stands still until it is set."""

    now: float = 0
    looks: int = 0

    def monotonic(self) -> float:
        self.looks += 1
        return self.now

    async def pass_by(self, seconds: float) -> None:
        """Return once the connections were looked at."""
        self.now += seconds
        looked = self.looks

        async def is_looked_at() -> bool:
            return self.looks > looked

        await eventually("the connections are looked at", is_looked_at)


def closed(bound: str) -> float:
    """How many connections were closed for it."""
    labels = {"bound": bound}
    return REGISTRY.get_sample_value("bankside_http_connections_closed_total", labels) or 0


async def test_a_body_of_megabytes_that_is_refused_has_an_answer() -> None:
    async def refuse(_: web.Request) -> web.Response:
        return web.Response(status=413)

    size = 8 * MOST_AHEAD_BYTES
    async with listening(refuse) as (_, address):
        reader, writer = await asyncio.open_connection(*address)
        writer.write(
            b"POST / HTTP/1.1\r\nHost: here\r\nContent-Length: %d\r\nConnection: close\r\n\r\n"
            % size
        )
        await writer.drain()
        async with asyncio.timeout(20 * pace()):
            answered = await reader.readuntil(b"\r\n")

            writer.write(bytes(size))
            await writer.drain()
            rest = await reader.read()
        writer.transport.abort()

    assert answered.startswith(b"HTTP/1.1 413")
    assert rest.endswith(b"\r\n\r\n"), "it is closed, not reset"


async def test_an_empty_line_behind_a_request_begins_no_headers() -> None:
    async with listening(answer, stalled_seconds=0.01) as (connections, address):
        closing = asyncio.create_task(connections.close_slow_ones_for_ever())
        reader, writer = await asyncio.open_connection(*address)
        begun, begins = await asyncio.open_connection(*address)
        async with asyncio.timeout(20 * pace()):
            writer.write(b"GET / HTTP/1.1\r\nHost: here\r\n\r\n")
            await reader.readuntil(b"\r\n\r\n")
            writer.write(b"\r\n")
            begins.write(b"\r\nG")

            ended = await begun.read()  # a later look at all connections
            writer.write(b"GET / HTTP/1.1\r\nHost: here\r\n\r\n")
            again = await reader.readuntil(b"\r\n\r\n")
        for each in (writer, begins):
            each.transport.abort()
        closing.cancel()
        await asyncio.wait({closing})

    assert ended == b""
    assert again.startswith(b"HTTP/1.1 200")


@pytest.mark.parametrize("piece", [2**18, 1000])
@pytest.mark.parametrize("end", [b"", b"\r\n\r\n"], ids=["unended", "ended"])
@pytest.mark.parametrize(
    "before", [b"", GET, POST, IN_CHUNKS], ids=["first", "GET", "POST", "chunks"]
)
async def test_a_head_beyond_its_bound_is_refused(before: bytes, end: bytes, piece: int) -> None:
    head = head_of(MOST_HEAD_BYTES + 1 - len(end)) + end
    async with listening(read_body) as (_, address), asyncio.timeout(20 * pace()):
        reader, writer = await asyncio.open_connection(*address)
        writer.write(before)
        if before:
            assert (await reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 200")
        for start in range(0, len(head), piece):
            writer.write(head[start : start + piece])
            await writer.drain()

        answered = await reader.read()
        writer.transport.abort()

    assert answered.startswith(b"HTTP/1.1 431 Request Header Fields Too Large\r\n")
    assert b"\r\nX-Request-Id: " in answered


@pytest.mark.parametrize("cut", [1, 2, 3])
def test_an_empty_line_that_arrives_in_two_pieces_ends_a_head(cut: int) -> None:
    head, heads = head_of(100) + b"\r\n\r\n", RequestHeads()

    assert heads.received(head[:-cut]) == len(head) - cut
    assert heads.received(head[-cut:] + b"x" * MOST_HEAD_BYTES) == len(head)
    assert heads.received(b"x" * MOST_HEAD_BYTES) == 0


@pytest.mark.parametrize("piece", [2**18, 1000])
async def test_heads_up_to_their_bound_are_read(piece: int) -> None:
    sent = (head_of(MOST_HEAD_BYTES - 4) + b"\r\n\r\n" + POST + IN_CHUNKS) * 2
    async with listening(read_body) as (_, address), asyncio.timeout(20 * pace()):
        reader, writer = await asyncio.open_connection(*address)
        for request in re.split(rb"(?=GET|POST)", sent)[1:]:
            for start in range(0, len(request), piece):
                writer.write(request[start : start + piece])
                await writer.drain()

            assert (await reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 200")
        writer.transport.abort()


@pytest.mark.parametrize(
    "before",
    [GET, POST, IN_CHUNKS, GET + b"\r\n\r\n", ENDS_A_LINE + b"\r\n"],
    ids=["GET", "POST", "chunks", "empty lines", "body that ends a line"],
)
async def test_a_head_beyond_its_bound_behind_a_request_ends_the_connection_before_the_answer(
    before: bytes,
) -> None:
    may_end, known = asyncio.Event(), closed("large_head")

    async def wait(request: web.Request) -> web.Response:
        await request.read()
        await may_end.wait()
        return web.Response()

    async with listening(wait) as (_, address), asyncio.timeout(20 * pace()):
        reader, writer = await asyncio.open_connection(*address)
        writer.write(before + head_of(2 * MOST_HEAD_BYTES))

        with suppress(ConnectionResetError):
            assert await reader.read() == b""
        may_end.set()
        writer.transport.abort()

    assert closed("large_head") > known


@pytest.mark.parametrize("behind", [GET[:20], GET], ids=["part", "whole"])
@pytest.mark.parametrize(
    "before", [GET, POST, IN_CHUNKS, UPGRADE], ids=["GET", "POST", "chunks", "Upgrade"]
)
async def test_what_is_sent_behind_a_request_ends_the_connection_with_an_answer(
    before: bytes, behind: bytes
) -> None:
    async with listening(read_body) as (_, address), asyncio.timeout(20 * pace()):
        reader, writer = await asyncio.open_connection(*address)
        writer.write(before + behind)

        answered = await reader.read()
        writer.transport.abort()

    *_, last = answered.split(b"HTTP/1.1 ")
    assert last.startswith(b"200 OK")
    assert b"Connection: close" in last


async def test_a_request_in_one_piece_with_a_body_that_was_answered_before_is_answered() -> None:
    head, body = POST.split(b"\r\n\r\n")
    async with listening(answer) as (_, address), asyncio.timeout(20 * pace()):
        reader, writer = await asyncio.open_connection(*address)
        writer.write(head + b"\r\n\r\n")
        await reader.readuntil(b"\r\n\r\n")

        writer.write(body + GET)
        answered = await reader.read()
        writer.transport.abort()

    assert answered.startswith(b"HTTP/1.1 200")
    assert b"Connection: close" in answered


async def test_a_request_that_is_answered_before_the_end_of_its_body_keeps_the_connection() -> None:
    begun, end = IN_CHUNKS[: -len(b"0\r\n\r\n")], b"0\r\n\r\n"
    async with listening(answer) as (_, address), asyncio.timeout(20 * pace()):
        reader, writer = await asyncio.open_connection(*address)
        writer.write(begun)
        early = await reader.readuntil(b"\r\n\r\n")
        writer.write(end)
        writer.write(GET)
        next_one = await reader.readuntil(b"\r\n\r\n")
        writer.transport.abort()

    assert b"Connection: close" not in early
    assert next_one.startswith(b"HTTP/1.1 200")


async def test_headers_in_one_piece_with_a_body_that_was_answered_before_are_bounded(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(connections_module, "SWEEP_SECONDS", 0.01)
    known = closed("slow_headers")
    head, body = POST.split(b"\r\n\r\n")
    async with (
        listening(answer, stalled_seconds=0.1) as (connections, address),
        asyncio.timeout(20 * pace()),
    ):
        reader, writer = await asyncio.open_connection(*address)
        writer.write(head + b"\r\n\r\n")
        await reader.readuntil(b"\r\n\r\n")
        writer.write(body + GET[:20])
        sweeping = asyncio.create_task(connections.close_slow_ones_for_ever())

        with suppress(ConnectionResetError):
            assert await reader.read() == b""
        writer.transport.abort()
        sweeping.cancel()
        await asyncio.wait({sweeping})

    assert closed("slow_headers") == known + 1


async def test_an_answered_request_leaves_the_connection_idle(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock = Clock()
    monkeypatch.setattr(connections_module, "time", clock)
    monkeypatch.setattr(connections_module, "SWEEP_SECONDS", 0.01)
    async with (
        listening(read_body, stalled_seconds=10) as (connections, address),
        asyncio.timeout(20 * pace()),
    ):
        sweeping = asyncio.create_task(connections.close_slow_ones_for_ever())
        reader, writer = await asyncio.open_connection(*address)
        for sent in (GET, POST, IN_CHUNKS, UPGRADE, GET):
            writer.write(sent)
            answered = await reader.readuntil(b"\r\n\r\n")
            assert answered.startswith(b"HTTP/1.1 200")
            assert b"Connection: close" not in answered
            await clock.pass_by(20)
        writer.transport.abort()
        sweeping.cancel()
        await asyncio.wait({sweeping})


@pytest.mark.parametrize("request_before", [False, True], ids=["at first", "after a request"])
async def test_empty_lines_without_an_end_end_the_connection(request_before: bool) -> None:
    request = b"GET / HTTP/1.1\r\nHost: here\r\n\r\n"
    async with listening(answer) as (_, address):
        reader, writer = await asyncio.open_connection(*address)
        async with asyncio.timeout(20 * pace()):
            if request_before:
                writer.write(b"\r\n" * (MOST_EMPTY_BYTES // 2) + request)
                assert (await reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 200")

            writer.write(b"\r\n" * MOST_EMPTY_BYTES)
            with suppress(ConnectionResetError):
                assert await reader.read() == b""
        writer.transport.abort()


@pytest.mark.parametrize("by_tls", [False, True], ids=["plain", "TLS"])
async def test_answers_that_are_not_read_are_bounded_in_bytes(
    by_tls: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections_module, "SWEEP_SECONDS", 0.05)
    authority = Authority(tmp_path)
    body = random.randbytes(MOST_BYTES_OF_ADDRESS // 2)

    async def answer(_: web.Request) -> web.Response:
        return web.Response(body=body)

    async def is_one_closed() -> bool:
        return closed("unread_answers") > before

    before = closed("unread_answers")
    encryption = authority.identity().context() if by_tls else None
    trusting = client_context(authority.file) if by_tls else None
    async with (
        listening(answer, encryption=encryption) as (connections, (_, port)),
        asyncio.timeout(20 * pace()),
    ):
        sweeping = asyncio.create_task(connections.close_slow_ones_for_ever())
        opened = []
        for _ in range(4):
            reader, writer = await asyncio.open_connection("localhost", port, ssl=trusting)
            cast(asyncio.Transport, writer.transport).pause_reading()
            opened.append((reader, writer))
            writer.write(b"GET / HTTP/1.1\r\nHost: here\r\nConnection: close\r\n\r\n")
        await eventually("one is closed", is_one_closed)
        sweeping.cancel()
        await asyncio.wait({sweeping})

        whole = []
        for reader, writer in opened:
            cast(asyncio.Transport, writer.transport).resume_reading()
            with suppress(ConnectionResetError):
                whole.append((await reader.read()).endswith(body))
            writer.transport.abort()

    assert 1 <= whole.count(True) < len(opened)


@pytest.mark.parametrize("by_tls", [False, True], ids=["plain", "TLS"])
async def test_a_caller_that_reads_slowly_keeps_its_connection_until_it_stops_reading(
    by_tls: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = Clock()
    monkeypatch.setattr(connections_module, "time", clock)
    monkeypatch.setattr(connections_module, "SWEEP_SECONDS", 0.01)
    answering: list[TransportSocket] = []

    async def answer(request: web.Request) -> web.Response:
        answering.append(request.get_extra_info("socket"))
        return web.Response(body=bytes(16 * 2**20))

    authority = Authority(tmp_path)
    encryption = authority.identity().context() if by_tls else None
    trusting = client_context(authority.file) if by_tls else None
    before = closed("unread_answer")
    async with (
        listening(answer, stalled_seconds=10, encryption=encryption) as (connections, address),
        asyncio.timeout(20 * pace()),
    ):
        sweeping = asyncio.create_task(connections.close_slow_ones_for_ever())
        caller = socket.socket()
        caller.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2**16)
        caller.connect(address)
        reader, writer = await asyncio.open_connection(
            sock=caller, ssl=trusting, server_hostname="localhost" if by_tls else None
        )
        writer.write(b"GET / HTTP/1.1\r\nHost: here\r\n\r\n")
        await reader.readuntil(b"\r\n\r\n")
        [answered_on] = answering

        for _ in range(4):
            taken = acknowledged_bytes(answered_on)
            while acknowledged_bytes(answered_on) == taken:
                assert await reader.read(2**14)
            await clock.pass_by(6)
        closed_while_it_reads = closed("unread_answer") - before
        while closed("unread_answer") == before:
            await clock.pass_by(6)
        sweeping.cancel()
        await asyncio.wait({sweeping})
        writer.transport.abort()

    assert closed_while_it_reads == 0


async def test_a_small_answer_that_is_not_read_ends_the_connection(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(connections_module, "SWEEP_SECONDS", 0.01)

    async def answer(request: web.Request) -> web.Response:
        answered_on = request.get_extra_info("socket")
        answered_on.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)
        return web.Response(body=bytes(32 * 1024))

    async def is_one_closed() -> bool:
        return closed("unread_answer") > before

    before = closed("unread_answer")
    async with listening(answer, stalled_seconds=0.1) as (connections, address):
        sweeping = asyncio.create_task(connections.close_slow_ones_for_ever())
        with socket.socket() as caller:
            caller.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
            caller.connect(address)

            caller.sendall(b"GET / HTTP/1.1\r\nHost: here\r\nConnection: close\r\n\r\n")
            await eventually("it is closed", is_one_closed)
        sweeping.cancel()
        await asyncio.wait({sweeping})


async def test_connections_that_come_while_it_drains_are_served_also_when_none_was_open() -> None:
    connections = Connections(str, per_address=8, in_all=8, stalled_seconds=10)
    application = web.Application(middlewares=[connections.middleware])
    application.on_response_prepare.append(connections.close_when_draining)
    application.router.add_get("/", answer)
    runner = web.AppRunner(application)
    await runner.setup()
    handler = runner.server
    assert handler is not None
    protocols = connections.protocols(handler)
    server = await asyncio.get_running_loop().create_server(protocols, LOOPBACK, 0)
    url = f"http://{LOOPBACK}:{server.sockets[0].getsockname()[1]}/"
    async with server, ClientSession() as session:
        draining = asyncio.create_task(connections.drain(60 * pace()))

        closed = []
        for _ in range(3):
            async with session.get(url) as response:
                closed.append(response.headers["Connection"])
        was_draining = not draining.done()
        draining.cancel()
        await asyncio.wait({draining})

    await runner.cleanup()
    assert closed == ["close"] * 3
    assert was_draining


async def test_a_request_of_a_connection_that_was_made_at_last_is_waited_for() -> None:
    async def answer(_: web.Request) -> web.Response:
        return web.Response(text="served")

    connections = Connections(lambda peer: peer, per_address=10, in_all=10, stalled_seconds=10)
    served = web.Application(middlewares=[connections.middleware])
    served.on_response_prepare.append(connections.close_when_draining)
    served.router.add_get("/", answer)
    runner = web.AppRunner(served)
    await runner.setup()
    assert runner.server is not None
    loop = asyncio.get_running_loop()
    server = await loop.create_server(connections.protocols(runner.server), LOOPBACK, 0)
    reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
    await asyncio.sleep(0)  # the server accepts it
    await connections.drain(0.05)
    server.close()

    waiting = asyncio.create_task(until_arrived(connections, None, 5 * pace()))
    await asyncio.sleep(0.1)
    is_waiting = not waiting.done()
    writer.write(b"GET / HTTP/1.1\r\nHost: here\r\n\r\n")
    answered = await reader.readuntil(b"served")
    await waiting
    await until_arrived(connections, None, 0)
    writer.close()
    await runner.cleanup()

    assert is_waiting
    assert answered.startswith(b"HTTP/1.1 200")
