"""Where the bytes of an answer are cut, however they come."""

from __future__ import annotations

import asyncio
from unittest.mock import Mock, patch

import pytest
from aiohttp.client_proto import ResponseHandler

from services.webhook_dispatcher.adapters.strict_connection import (
    MAX_RESPONSE_BYTES,
    StrictHandler,
)

ANSWER = (
    b"\r\nHTTP/1.1 100 Continue\r\n\r\n"
    b"HTTP/1.1 103 Early Hints\r\nLink: a\r\n\r\n"
    b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nokay"
)
CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"


def asked() -> tuple[StrictHandler, Mock]:
    """A connection on which a request was sent, and its transport."""
    transport = Mock(is_closing=Mock(return_value=False))
    transport.close = transport.abort = lambda: transport.is_closing.configure_mock(
        return_value=True
    )
    handler = StrictHandler(asyncio.get_running_loop())
    handler.connection_made(transport)
    handler.set_response_params(max_headers=64)
    return handler, transport


@pytest.mark.parametrize("end", [b"\r\n", b"\n"], ids=["CRLF", "LF"])
async def test_an_answer_with_bytes_after_its_end_counts_wherever_it_is_split(end: bytes) -> None:
    answer = ANSWER.replace(b"\r\n", end)
    for split in range(1, len(answer)):
        handler, transport = asked()

        for part in (answer[:split], answer[split:]):
            handler.data_received(part)

        messages = [await handler.read() for _ in range(3)]
        assert [message.code for message, _ in messages] == [100, 103, 200], split
        assert await messages[-1][1].read() == b"ok"
        assert transport.is_closing()


async def test_empty_lines_before_an_answer_are_parsed_together() -> None:
    handler, _ = asked()

    with patch.object(ResponseHandler, "data_received") as parse:
        for _ in range(3):
            handler.data_received(b"\n\r\n" * 1000)

    assert parse.call_count == 3


@pytest.mark.parametrize(
    ("begin", "part"),
    [
        (b"", b"\r\n" * 32_768),
        (CHUNKED + b"1;", b"x" * 65_536),
    ],
    ids=["empty lines", "a chunk's extension"],
)
async def test_no_more_is_parsed_for_one_request_than_the_bound(begin: bytes, part: bytes) -> None:
    handler, transport = asked()
    parsed = 0

    def note(_: ResponseHandler, data: bytes) -> None:
        nonlocal parsed
        parsed += len(data)
        parse(handler, data)

    parse = ResponseHandler.data_received
    with patch.object(ResponseHandler, "data_received", note):
        handler.data_received(begin)
        for _ in range(100):
            if not transport.is_closing():
                handler.data_received(part)

    assert transport.is_closing()
    assert parsed <= MAX_RESPONSE_BYTES


async def test_the_bound_is_that_of_one_request() -> None:
    handler, transport = asked()
    answer = b"HTTP/1.1 200 OK\r\nContent-Length: 60000\r\n\r\n" + bytes(60_000)

    for _ in range(MAX_RESPONSE_BYTES // 60_000 + 1):
        handler.set_response_params(max_headers=64)
        handler.data_received(answer)

    assert not transport.is_closing()
