"""The documents of the two listeners, `/openapi.json`, and the page that shows the public one, `/docs`. No credentials
needed.
"""

from __future__ import annotations

from typing import Any

from aiohttp import web

from libs.contracts.exact_json import encode
from libs.specs import swagger
from libs.specs.openapi import openapi_document, operator_document
from services.gateway.requests import request_id_of


def add_documents(application: web.Application) -> None:
    """Of partners and customers."""

    async def page(request: web.Request) -> web.Response:
        return _respond(request, swagger.page(), "text/html; charset=utf-8")

    async def asset(request: web.Request) -> web.Response:
        found = swagger.asset(request.match_info["name"])
        if found is None:
            raise web.HTTPNotFound
        return _respond(request, *found)

    _add(application, openapi_document())
    application.router.add_get("/docs", page, allow_head=False)
    application.router.add_get("/docs/{name}", asset, allow_head=False)


def add_operator_document(application: web.Application) -> None:
    """Of operators; there is no page."""
    _add(application, operator_document())


def _add(application: web.Application, document: dict[str, Any]) -> None:
    encoded = encode(document)

    async def openapi(request: web.Request) -> web.Response:
        return _respond(request, encoded, "application/json")

    application.router.add_get("/openapi.json", openapi, allow_head=False)


def _respond(request: web.Request, body: bytes, content_type: str) -> web.Response:
    headers = {
        "Content-Type": content_type,
        "Content-Security-Policy": swagger.CONTENT_SECURITY_POLICY,
        "X-Content-Type-Options": "nosniff",
        "X-Request-Id": request_id_of(request),
    }
    return web.Response(body=body, headers=headers)
