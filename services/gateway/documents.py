"""The documents of the two listeners, `/openapi.json` and `/asyncapi.json`, the reference that shows the public one,
`/docs`, and `/`, which says where they are. No credentials needed.
"""

from __future__ import annotations

import contextlib
import zlib
from http import HTTPMethod
from typing import Final

import msgspec
import structlog
from aiohttp import web

from libs.contracts.errors import Unavailable
from libs.contracts.events import API_VERSION
from libs.contracts.exact_json import encode
from libs.runtime.routes import Routes
from libs.specs.paths import ASYNCAPI, OPENAPI, REFERENCE
from libs.specs.reference import CONTENT_SECURITY_POLICY
from services.gateway.child_output import ChildOutput, NoOutput
from services.gateway.requests import request_id_of
from services.gateway.responses import failure

PUBLISHED: Final = "libs.specs.published"
"""The module that makes them. It runs in a child process: importing it here would keep its memory."""

PIECE_BYTES = 64 * 1024

Pages = dict[str, tuple[str, bytes]]
"""By paths: the media type, and the content compressed, which takes a millisecond to decompress."""


class Documents:
    """What one listener shows, made when the first of it is asked for.

    Args:
        listener: as `libs.specs.published` has it.
    """

    def __init__(self, listener: str) -> None:
        self._child = ChildOutput(PUBLISHED, listener)
        self._pages: Pages = {}
        self._sizes: dict[str, int] = {}
        """Of pages that were asked for, decompressed."""
        self._log = structlog.get_logger("gateway.documents")

    async def page(self, request: web.Request) -> web.StreamResponse:
        """The handler of its paths."""
        if not self._pages:
            try:
                made = await self._child.read()
            except NoOutput as error:
                self._log.error("documents_not_made", because=str(error))
                request_id = request_id_of(request)
                response = failure(Unavailable(), request_id)
                response.headers["X-Request-Id"] = request_id
                return response
            self._pages = msgspec.msgpack.decode(made, type=Pages)
        if (found := self._pages.get(request.path)) is None:
            raise web.HTTPNotFound
        content_type, compressed = found
        if request.path not in self._sizes:
            self._sizes[request.path] = len(zlib.decompress(compressed))
        return await _stream(request, compressed, content_type, self._sizes[request.path])

    async def close(self) -> None:
        await self._child.close()


def add_documents(routes: Routes, documents: Documents) -> None:
    """Of partners and customers."""
    links = {"openapi": OPENAPI, "asyncapi": ASYNCAPI, "documentation": REFERENCE}
    _add_start(routes, "Bankside", links)
    for path in (
        *(OPENAPI, ASYNCAPI, REFERENCE),
        *(f"{REFERENCE}/{{name}}", f"{REFERENCE}/guides/{{name}}"),
    ):
        routes.add_get(path, documents.page)


def add_operator_document(routes: Routes, documents: Documents) -> None:
    """Of operators; there is no page."""
    _add_start(routes, "Bankside, for operators", {"openapi": OPENAPI})
    routes.add_get(OPENAPI, documents.page)


def _add_start(routes: Routes, title: str, links: dict[str, str]) -> None:
    body = encode({"name": title, "api_version": API_VERSION, **links})

    async def start(request: web.Request) -> web.Response:
        return _respond(request, body, "application/json")

    routes.add_get("/", start)


def _respond(request: web.Request, body: bytes, content_type: str) -> web.Response:
    return web.Response(body=body, headers=_headers(request, content_type))


async def _stream(
    request: web.Request, compressed: bytes, content_type: str, size: int
) -> web.StreamResponse:
    """In pieces: aiohttp holds the body of an answer until the next request of its connection, so that a
    client with many connections could have a document held on each.
    """
    response = web.StreamResponse(headers=_headers(request, content_type))
    response.content_length = size
    with contextlib.suppress(ConnectionError):  # who asked has gone
        await response.prepare(request)
        if request.method != HTTPMethod.HEAD:
            inflating = zlib.decompressobj()
            piece = inflating.decompress(compressed, PIECE_BYTES)
            while piece:
                await response.write(piece)
                piece = inflating.decompress(inflating.unconsumed_tail, PIECE_BYTES)
        await response.write_eof()
    return response


def _headers(request: web.Request, content_type: str) -> dict[str, str]:
    return {
        "Content-Type": content_type,
        "Content-Security-Policy": CONTENT_SECURITY_POLICY,
        "X-Content-Type-Options": "nosniff",
        "X-Request-Id": request_id_of(request),
    }
