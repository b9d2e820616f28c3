"""Client connections on which a server sends one response for each request, and no more.

A callback endpoint is a stranger's server. aiohttp 3.14 leaves it two ways to harm the process:

| the endpoint | aiohttp | here |
|---|---|---|
| sends responses that nothing requested | parses and queues them without a bound | the connection is aborted |
| sends on after the end of a TLS connection | reads on for up to 30 s | every end is an abort |

aiohttp has no documented way to give a connector another protocol: `speak_strictly` sets `TCPConnector._factory`, and
`StrictHandler` extends `ResponseHandler`. `pyproject.toml` therefore bounds aiohttp, and `test_poster_bounds` fails
when a new version no longer calls what is overridden here.
"""

from __future__ import annotations

import asyncio
import functools
from typing import Any, Final

import aiohttp
from aiohttp.client_proto import ResponseHandler

MAX_INTERIM_RESPONSES: Final = 8
PIECE_BYTES: Final = 4096
"""Until the final response begins, so much is parsed at a time: a full read of nothing but interim ones takes 0.2 s."""


class StrictHandler(ResponseHandler):
    """One final response for each request, and a few interim ones (1xx)."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__(loop)
        self._interim = 0
        self._body: Any = None
        """Of the final response to the request that is under way; None until it is there."""

    def set_response_params(self, **params: Any) -> None:
        """A request begins."""
        self._interim, self._body = 0, None
        super().set_response_params(**params)

    def data_received(self, data: bytes) -> None:
        while self._body is None and len(data) > PIECE_BYTES:
            super().data_received(data[:PIECE_BYTES])
            data = data[PIECE_BYTES:]
            if not self.is_connected():
                return
        is_asked = self._body is None or not self._body.is_eof()
        if is_asked or not data:
            super().data_received(data)
        else:
            self.abort()

    def feed_data(self, data: Any, size: int = 0) -> None:
        message, body = data
        is_interim = message.code < 200 and message.code != 101
        self._interim += is_interim
        if self._body is not None or self._interim > MAX_INTERIM_RESPONSES:
            self.force_close()
            if self.transport is not None:
                self.transport.abort()
            return
        if not is_interim:
            self._body = body
        super().feed_data(data, size)

    def close(self) -> None:
        self.abort()


def speak_strictly(connector: aiohttp.TCPConnector) -> None:
    """Have a connector use `StrictHandler` for its connections."""
    factory: Any = functools.partial(StrictHandler, loop=asyncio.get_running_loop())
    connector._factory = factory
