"""Responses: the envelope on success, a problem document (RFC 9457) or the 422 body otherwise."""

from __future__ import annotations

from typing import Any

from aiohttp import web

from libs.contracts.errors import BanksideError, Invalid
from libs.contracts.exact_json import encode
from libs.contracts.operation import Operation

JSON = "application/json"
PROBLEM = "application/problem+json"
NO_STORE = {"Cache-Control": "no-store"}
"""For everything but the documents: answers hold what only their caller may see."""


def success(operation: Operation, payload: Any, message: str | None = None) -> web.Response:
    """The envelope around a payload `{"data": …}`, either decoded or already encoded; `message` replaces the row's."""
    encoded = payload if isinstance(payload, bytes) else encode(payload)
    # The payload is an object that is already encoded: the message is put in front of its members.
    body = b'{"message":' + encode(message or operation.message) + b"," + encoded[1:]
    return web.Response(body=body, content_type=JSON, headers=NO_STORE)


def failure(error: BanksideError, request_id: str) -> web.Response:
    if isinstance(error, Invalid):
        body, content_type = encode({"detail": error.errors}), JSON
    else:
        problem = {
            "type": f"urn:bankside:error:{error.code}",
            "title": error.title(),
            "status": error.status,
            "detail": error.detail,
            "code": error.code,
            "request_id": request_id,
            **error.extra,
        }
        body, content_type = encode(problem), PROBLEM
    return web.Response(
        body=body,
        status=error.status,
        content_type=content_type,
        headers=NO_STORE | error.headers,
    )
