"""aiohttp's protocol for connections of callers, with an answer of ours to what is no HTTP request.

aiohttp answers by itself what its parser refuses, before any application or signal: the line that it could not read
stands in the answer, a tax number in a broken body too, and `Server` names the versions of Python and aiohttp.

aiohttp exports `RequestHandler` and describes `handle_error` as its method; it does not document either as made to be
extended, or a way to give a runner another protocol. So `pyproject.toml` bounds aiohttp, and
`tests/unit/runtime/test_request_handlers.py` fails where what this builds on has changed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from http import HTTPStatus
from typing import Any

from aiohttp import web
from uuid_utils import uuid7

from libs.runtime.request_log import request_log

NOT_READABLE = "This is no HTTP request that can be read."
SERVER = "bankside"
_HEAD_TOO_LARGE = "The line and the headers of this request are too large."


class _RequestHandler(web.RequestHandler):
    __slots__ = ()

    def handle_error(
        self,
        request: web.BaseRequest,
        status: int = HTTPStatus.INTERNAL_SERVER_ERROR,
        exc: BaseException | None = None,
        message: str | None = None,
    ) -> web.StreamResponse:
        """As aiohttp's, with nothing of what was sent."""
        response = super().handle_error(request, status, exc, message and NOT_READABLE)
        response.headers["Server"] = SERVER
        response.headers["Cache-Control"] = "no-store"
        response.headers["X-Request-Id"] = _request_id(status)
        return response


def head_too_large() -> bytes:
    """The answer to a request whose head goes beyond its bound, which no parser is given any more."""
    status = HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE
    lines = (
        f"HTTP/1.1 {status.value} {status.phrase}",
        "Content-Type: text/plain; charset=utf-8",
        f"Content-Length: {len(_HEAD_TOO_LARGE)}",
        "Connection: close",
        "Cache-Control: no-store",
        f"Server: {SERVER}",
        f"X-Request-Id: {_request_id(status)}",
        "",
        _HEAD_TOO_LARGE,
    )
    return "\r\n".join(lines).encode()


def _request_id(status: int) -> str:
    """A new id, and a line in the log that has it: of what the parser refused, the id that was sent is not known."""
    request_id = str(uuid7())
    request_log.line("request_answered_as_text", request_id=request_id, status=status)
    return request_id


def request_handlers(server: web.Server, **options: Any) -> Callable[[], asyncio.Protocol]:
    """What makes the protocol of each connection of a runner's server.

    Args:
        options: of connections, as `AppRunner` takes them; those that the runner itself was given do not count.
    """
    loop = asyncio.get_running_loop()
    return lambda: _RequestHandler(server, loop=loop, **options)
