"""Where the bytes of an answer are cut, however they come."""

from __future__ import annotations

import asyncio
from unittest.mock import Mock, patch

import pytest
from aiohttp.client_proto import ResponseHandler

from services.webhook_dispatcher.adapters.strict_connection import StrictHandler

ANSWER = (
    b"\r\nHTTP/1.1 100 Continue\r\n\r\n"
    b"HTTP/1.1 103 Early Hints\r\nLink: a\r\n\r\n"
    b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nokay"
)


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
