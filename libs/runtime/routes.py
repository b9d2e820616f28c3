"""Routes of an application for callers, whose middlewares bound connections: every request with a path passes these.

aiohttp answers by itself, before any middleware, an expectation that it does not know, and any at a target without a
route. Such are only those without a path (`OPTIONS *`, `CONNECT`).
"""

from __future__ import annotations

from http import HTTPMethod
from typing import NoReturn

from aiohttp import HttpVersion11, web
from aiohttp.typedefs import Handler


class Routes:
    """Of one application.

    Args:
        router: that application's.
    """

    def __init__(self, router: web.UrlDispatcher) -> None:
        self._router = router

    def add(self, method: HTTPMethod, path: str, handler: Handler) -> None:
        self._router.add_route(method.value, path, handler, expect_handler=meet_expectation)

    def add_get(self, path: str, handler: Handler) -> None:
        """A GET, and HEAD likewise."""
        self._router.add_get(path, handler, expect_handler=meet_expectation)

    def add_post(self, path: str, handler: Handler) -> None:
        self.add(HTTPMethod.POST, path, handler)

    def add_unknown(self) -> None:
        """The route of what no other one takes, added last. It raises HTTPNotFound and HTTPMethodNotAllowed."""
        self._router.add_route("*", "/{path:(?s:.*)}", _unknown, expect_handler=meet_expectation)


async def meet_expectation(request: web.Request) -> None:
    """Ask for the body of a caller that waits to be asked; pass over what else may be expected, and what is expected in
    HTTP/1.0, which has no interim answers (RFC 9110, 10.1.1).
    """
    transport = request.transport
    is_waiting = request.headers.get("Expect", "").lower() == "100-continue"
    if is_waiting and request.version >= HttpVersion11 and transport is not None:
        transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")


async def _unknown(request: web.Request) -> NoReturn:
    allowed: set[str] = set()
    for resource in request.app.router.resources():
        _, methods = await resource.resolve(request)
        allowed |= methods
    allowed.discard("*")  # of this route itself
    if allowed:
        raise web.HTTPMethodNotAllowed(request.method, allowed)
    raise web.HTTPNotFound
