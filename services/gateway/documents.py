"""The documents of the two listeners, `/openapi.json`, the pages that show the public one, `/docs`, and `/`, which says
where they are. No credentials needed.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from typing import Any

import msgspec
from aiohttp import web

from libs.contracts.events import API_VERSION
from libs.contracts.exact_json import encode
from libs.specs.openapi import openapi_document, operator_document
from libs.specs.reference import CONTENT_SECURITY_POLICY
from services.gateway.made_aside import MadeAside
from services.gateway.requests import request_id_of


class Document:
    """One of them as JSON, made aside: the validators of all models, which it is read off, take 6 MiB.

    Kept compressed, in 25 KB rather than 600. To decompress it takes a millisecond.
    """

    def __init__(self, what: str, make: Callable[[], dict[str, Any]]) -> None:
        self._making = MadeAside(what, lambda: zlib.compress(encode(make())))
        self._compressed = b""

    async def finish(self) -> None:
        """As `MadeAside.made`."""
        self._compressed = await self._making.made()

    def encoded(self) -> bytes:
        return zlib.decompress(self._compressed)


class Pages:
    """The reference, made aside as well: pages and what they load, each compressed."""

    def __init__(self) -> None:
        self._making = MadeAside("the reference", _made_pages)
        self._pages: dict[str, tuple[str, bytes]] = {}

    async def finish(self) -> None:
        """As `MadeAside.made`."""
        self._pages = msgspec.msgpack.decode(
            await self._making.made(), type=dict[str, tuple[str, bytes]]
        )

    def page(self, path: str) -> tuple[str, bytes] | None:
        """Its media type and content; None when there is none."""
        if (found := self._pages.get(path)) is None:
            return None
        content_type, compressed = found
        return content_type, zlib.decompress(compressed)


def _made_pages() -> bytes:
    # Templates and markdown take 8 MiB, of the forked process alone.
    from libs.specs.reference.pages import pages  # noqa: PLC0415

    made = pages(openapi_document())
    return msgspec.msgpack.encode(
        {path: (page.content_type, zlib.compress(page.body)) for path, page in made.items()}
    )


class Documents:
    """Of both listeners, begun in processes of their own (see `MadeAside`)."""

    def __init__(self) -> None:
        self.public = Document("the OpenAPI document", openapi_document)
        self.operator = Document("the OpenAPI document of operators", operator_document)
        self.reference = Pages()

    async def finish(self) -> None:
        """To be awaited, once, before one of them is asked for."""
        await self.public.finish()
        await self.operator.finish()
        await self.reference.finish()


def add_documents(application: web.Application, documents: Documents) -> None:
    """Of partners and customers."""

    async def page(request: web.Request) -> web.Response:
        found = documents.reference.page(request.path)
        if found is None:
            raise web.HTTPNotFound
        content_type, body = found
        return _respond(request, body, content_type)

    _add_start(application, "Bankside", {"openapi": "/openapi.json", "documentation": "/docs"})
    _add(application, documents.public)
    for path in ("/docs", "/docs/{name}", "/docs/guides/{name}"):
        application.router.add_get(path, page)


def _add_start(application: web.Application, title: str, links: dict[str, str]) -> None:
    body = encode({"name": title, "api_version": API_VERSION, **links})

    async def start(request: web.Request) -> web.Response:
        return _respond(request, body, "application/json")

    application.router.add_get("/", start)


def add_operator_document(application: web.Application, documents: Documents) -> None:
    """Of operators; there is no page."""
    _add_start(application, "Bankside, for operators", {"openapi": "/openapi.json"})
    _add(application, documents.operator)


def _add(application: web.Application, document: Document) -> None:
    async def openapi(request: web.Request) -> web.Response:
        return _respond(request, document.encoded(), "application/json")

    application.router.add_get("/openapi.json", openapi)


def _respond(request: web.Request, body: bytes, content_type: str) -> web.Response:
    headers = {
        "Content-Type": content_type,
        "Content-Security-Policy": CONTENT_SECURITY_POLICY,
        "X-Content-Type-Options": "nosniff",
        "X-Request-Id": request_id_of(request),
    }
    return web.Response(body=body, headers=headers)
