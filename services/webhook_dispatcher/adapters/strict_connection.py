"""Client connections on which a server sends one response for each request, and no more.

A callback endpoint is a stranger's server. Where aiohttp 3.14 trusts it:

| the endpoint | aiohttp | here |
|---|---|---|
| sends responses that nothing requested | parses and queues them without a bound | the connection is aborted |
| sends empty lines, or a chunk's extension, without an end | parses them for 15 s | 1 MiB ends the connection |
| sends a body with a 204, or more of one than it says | loses a response that comes with it | the response counts |
| sends on after the end of a TLS connection | reads on for up to 30 s | every end is an abort |

aiohttp has no documented way to give a connector another protocol: `speak_strictly` sets `TCPConnector._factory`, and
`StrictHandler` extends `ResponseHandler`. `pyproject.toml` therefore bounds aiohttp, and `test_poster_bounds` fails
when a new version no longer calls what is overridden here.
"""

from __future__ import annotations

import asyncio
import functools
import re
from typing import Any, Final

import aiohttp
from aiohttp.client_proto import ResponseHandler
from aiohttp.http import HttpProcessingError

MAX_INTERIM_RESPONSES: Final = 8
MAX_RESPONSE_BYTES: Final = 1024 * 1024
"""As sent, interim responses and framing included: much more than heads within their bounds and as much of a body as is
read.
"""
_END_OF_HEAD: Final = re.compile(rb"\n\r?\n")
"""An empty line. The parser takes lines that end with LF alone."""


class StrictHandler(ResponseHandler):
    """One final response for each request, and a few interim ones (1xx)."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__(loop)
        self._interim = 0
        self._received_bytes = 0
        self._before = b""
        """The last bytes that were parsed of the head that has begun: with the next ones they may be its end."""
        self._body: Any = None
        """Of the final response to the request that is under way; None until it is there."""

    def set_response_params(self, **params: Any) -> None:
        """A request begins."""
        self._interim, self._received_bytes, self._before, self._body = 0, 0, b"", None
        super().set_response_params(**params)

    def data_received(self, data: bytes) -> None:
        self._received_bytes += len(data)
        if self._received_bytes > MAX_RESPONSE_BYTES:
            if self._body is None:
                self.set_exception(HttpProcessingError(message="The response is too long."))
            self._cut_off()
            return
        while self._body is None and data:
            piece, data = self._cut_after_head(data)
            super().data_received(piece)
            if not data or not self.is_connected():
                return
        is_asked = self._body is None or not self._body.is_eof()
        if is_asked or not data:
            super().data_received(data)
        else:
            self.abort()

    def _cut_after_head(self, data: bytes) -> tuple[bytes, bytes]:
        """What is parsed at once, up to the end of a head, and the rest: where the parser is given a head with bytes
        that do not belong to its answer, it raises, and the answer is lost.
        """
        seen = self._before + data
        begin = len(seen) - len(seen.lstrip(b"\r\n"))  # the parser skips empty lines before a head
        end = _END_OF_HEAD.search(seen, begin)
        if end is None:
            self._before = seen[begin:][-len(b"x\r\n\r") :]
            return data, b""
        cut = end.end() - len(self._before)
        self._before = b""
        return data[:cut], data[cut:]

    def feed_data(self, data: Any, size: int = 0) -> None:
        message, body = data
        is_interim = message.code < 200 and message.code != 101
        self._interim += is_interim
        if self._body is not None or self._interim > MAX_INTERIM_RESPONSES:
            self._cut_off()
            return
        if not is_interim:
            self._body = body
        super().feed_data(data, size)

    def _cut_off(self) -> None:
        """End the connection within a response: unlike after `abort`, its reader is told."""
        self.force_close()
        if self.transport is not None:
            self.transport.abort()

    def close(self) -> None:
        self.abort()


def speak_strictly(connector: aiohttp.TCPConnector) -> None:
    """Have a connector use `StrictHandler` for its connections."""
    factory: Any = functools.partial(StrictHandler, loop=asyncio.get_running_loop())
    connector._factory = factory
