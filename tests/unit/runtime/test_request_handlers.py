"""What is no HTTP request is answered without a word of it."""

from __future__ import annotations

import asyncio
import io
import json
import re

import pytest
from aiohttp import web

from deploy.local.ports import LOOPBACK
from libs.runtime import request_handlers as module
from libs.runtime.request_handlers import NOT_READABLE, head_too_large, request_handlers
from libs.runtime.request_log import Lines, RequestLog
from tests.support.pace import pace

TIN = b"912-34-5678"
CHUNKED = b"POST / HTTP/1.1\r\nHost: here\r\nTransfer-Encoding: chunked\r\n\r\n"


async def test_what_cannot_be_read_is_not_repeated_and_no_version_is_told(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    written, log = io.BytesIO(), RequestLog()
    lines = Lines(written)
    log.begin("gateway", lines)
    monkeypatch.setattr(module, "request_log", log)

    async def fail(_: web.Request) -> web.Response:
        raise ValueError(TIN)

    application = web.Application()
    application.router.add_get("/", fail)
    runner = web.AppRunner(application)
    await runner.setup()
    assert runner.server is not None
    handlers = request_handlers(runner.server, max_headers=2)
    server = await asyncio.get_running_loop().create_server(handlers, LOOPBACK, 0)

    async def answer_to(sent: bytes) -> bytes:
        reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
        async with asyncio.timeout(20 * pace()):
            writer.write(sent)
            answer = await reader.read()
        writer.transport.abort()
        return answer

    refused = [
        await answer_to(sent)
        for sent in (
            CHUNKED + TIN,
            b"GET / HTTP/1.1\r\nHost: here\r\nX-A: " + TIN + b"\x01\r\n\r\n",
            b"GET / HTTP/1.1\r\nHost: here\r\nX-A: " + TIN + b"\r\nX-B: b\r\n\r\n",
            TIN + b"\r\n\r\n",
        )
    ]
    failed = await answer_to(b"GET / HTTP/1.1\r\nHost: here\r\n\r\n")
    too_large = head_too_large()
    server.close()
    await runner.cleanup()
    lines.flush()
    logged = {
        line["request_id"]: line["status"]
        for line in map(json.loads, written.getvalue().splitlines())
    }

    assert {answer.split(b"\r\n")[0].split()[1] for answer in refused} == {b"400"}
    assert all(answer.endswith(b"\r\n" + NOT_READABLE.encode()) for answer in refused)
    assert failed.split()[1] == b"500"
    for answer in (*refused, failed, too_large):
        assert TIN not in answer
        assert b"aiohttp" not in answer
        assert b"\r\nServer: bankside\r\n" in answer
        assert b"\r\nCache-Control: no-store\r\n" in answer
        [request_id] = re.findall(rb"\r\nX-Request-Id: (\S+)\r\n", answer)
        assert logged[request_id.decode()] == int(answer.split()[1])
