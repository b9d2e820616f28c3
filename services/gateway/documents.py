"""The documents of the two listeners, `/openapi.json` and `/asyncapi.json`, the reference that shows the public one,
`/docs`, and `/`, which says where they are. No credentials needed.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from typing import Final

import msgspec
from aiohttp import web

from libs.contracts.events import API_VERSION
from libs.contracts.exact_json import encode
from libs.specs.openapi import openapi_document, operator_document
from libs.specs.reference import CONTENT_SECURITY_POLICY
from services.gateway.made_aside import MadeAside
from services.gateway.requests import request_id_of

OPENAPI: Final = "/openapi.json"
ASYNCAPI: Final = "/asyncapi.json"
JSON: Final = "application/json"


Made = dict[str, tuple[str, bytes]]
"""By paths: the media type, and the content compressed. The documents take 25 KB rather than 600 so, and a millisecond
to decompress.
"""


class Pages:
    """What one listener shows, made aside: the validators of all models take 6 MiB, and templates 8 more."""

    def __init__(self, what: str, make: Callable[[], Made]) -> None:
        self._making = MadeAside(what, lambda: msgspec.msgpack.encode(make()))
        self._made: Made = {}

    async def finish(self) -> None:
        """As `MadeAside.made`."""
        self._made = msgspec.msgpack.decode(await self._making.made(), type=Made)

    async def page(self, request: web.Request) -> web.Response:
        """The handler of its paths."""
        if (found := self._made.get(request.path)) is None:
            raise web.HTTPNotFound
        content_type, compressed = found
        return _respond(request, zlib.decompress(compressed), content_type)


class Documents:
    """Of both listeners, begun in processes of their own (see `MadeAside`)."""

    def __init__(self) -> None:
        self.public = Pages("the documents", _public)
        self.operator = Pages("the OpenAPI document of operators", _of_operators)

    async def finish(self) -> None:
        """To be awaited, once, before one of them is asked for."""
        await self.public.finish()
        await self.operator.finish()


def _public() -> Made:
    # Templates and markdown, of the forked process alone.
    from libs.specs.event_queues import event_queues_document  # noqa: PLC0415
    from libs.specs.reference.pages import pages  # noqa: PLC0415

    document = openapi_document()
    reference = {
        path: _made(page.content_type, page.body) for path, page in pages(document).items()
    }
    return {
        **reference,
        OPENAPI: _made(JSON, encode(document)),
        ASYNCAPI: _made(JSON, encode(event_queues_document())),
    }


def _of_operators() -> Made:
    return {OPENAPI: _made(JSON, encode(operator_document()))}


def _made(content_type: str, body: bytes) -> tuple[str, bytes]:
    return content_type, zlib.compress(body)


def add_documents(application: web.Application, documents: Documents) -> None:
    """Of partners and customers."""
    links = {"openapi": OPENAPI, "asyncapi": ASYNCAPI, "documentation": "/docs"}
    _add_start(application, "Bankside", links)
    for path in (OPENAPI, ASYNCAPI, "/docs", "/docs/{name}", "/docs/guides/{name}"):
        application.router.add_get(path, documents.public.page)


def add_operator_document(application: web.Application, documents: Documents) -> None:
    """Of operators; there is no page."""
    _add_start(application, "Bankside, for operators", {"openapi": OPENAPI})
    application.router.add_get(OPENAPI, documents.operator.page)


def _add_start(application: web.Application, title: str, links: dict[str, str]) -> None:
    body = encode({"name": title, "api_version": API_VERSION, **links})

    async def start(request: web.Request) -> web.Response:
        return _respond(request, body, JSON)

    application.router.add_get("/", start)


def _respond(request: web.Request, body: bytes, content_type: str) -> web.Response:
    headers = {
        "Content-Type": content_type,
        "Content-Security-Policy": CONTENT_SECURITY_POLICY,
        "X-Content-Type-Options": "nosniff",
        "X-Request-Id": request_id_of(request),
    }
    return web.Response(body=body, headers=headers)
