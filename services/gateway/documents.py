"""The interface's document and the page that shows it: `/openapi.json`, `/docs`. No credentials needed."""

from __future__ import annotations

from aiohttp import web

from libs.contracts.exact_json import encode
from libs.specs import swagger
from libs.specs.openapi import openapi_document
from services.gateway.requests import request_id_of


def add_documents(application: web.Application) -> None:
    document = encode(openapi_document())

    def respond(request: web.Request, body: bytes, content_type: str) -> web.Response:
        headers = {
            "Content-Type": content_type,
            "Content-Security-Policy": swagger.CONTENT_SECURITY_POLICY,
            "X-Content-Type-Options": "nosniff",
            "X-Request-Id": request_id_of(request),
        }
        return web.Response(body=body, headers=headers)

    async def openapi(request: web.Request) -> web.Response:
        return respond(request, document, "application/json")

    async def page(request: web.Request) -> web.Response:
        return respond(request, swagger.page(), "text/html; charset=utf-8")

    async def asset(request: web.Request) -> web.Response:
        found = swagger.asset(request.match_info["name"])
        if found is None:
            raise web.HTTPNotFound
        return respond(request, *found)

    application.router.add_get("/openapi.json", openapi, allow_head=False)
    application.router.add_get("/docs", page, allow_head=False)
    application.router.add_get("/docs/{name}", asset, allow_head=False)
