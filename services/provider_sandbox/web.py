"""HTTP, as all endpoints of the bank share it: bounded bodies, parsing, one shape for every error."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TypeVar

import structlog
from aiohttp import web
from aiohttp.typedefs import Handler
from multidict import MultiMapping
from pydantic import BaseModel, ValidationError

from services.provider_sandbox.database import UNAVAILABLE
from services.provider_sandbox.encoding import NotJson, decode, encode
from services.provider_sandbox.operations import Refusal

BODY_BYTES = 256 * 1024
BODY_SECONDS = 10
ERRORS_SHOWN = 20

HTTP_CODES = {404: "not_found", 405: "method_not_allowed", 413: "body_too_large"}

Refuse = Callable[[str], Refusal]
"""Makes the refusal of an endpoint's family out of what is wrong with the request."""

ModelT = TypeVar("ModelT", bound=BaseModel)

log = structlog.get_logger("provider_sandbox")


def malformed(what: str) -> Refusal:
    return Refusal(400, "malformed", what)


def invalid(what: str) -> Refusal:
    return Refusal(400, "invalid", what)


def unprocessable(what: str) -> Refusal:
    return Refusal(422, "invalid", what)


def json_response(status: int, body: bytes) -> web.Response:
    return web.Response(status=status, body=body, content_type="application/json")


def refusal_response(refusal: Refusal) -> web.Response:
    return json_response(refusal.status, encode(refusal.body))


async def read_content(request: web.Request, refuse: Refuse) -> object:
    """The decoded JSON body; no bytes at all are `{}`."""
    if "Content-Encoding" in request.headers:
        raise Refusal(415, "unsupported_encoding", "Send the body as it is.")
    try:
        async with asyncio.timeout(BODY_SECONDS):
            data = await request.read()
    except TimeoutError as error:
        raise Refusal(408, "request_timeout", "The body did not arrive in time.") from error
    try:
        return decode(data) if data else {}
    except NotJson as error:
        raise refuse(f"body: {error}") from error


def validated(model: type[ModelT], value: object, refuse: Refuse) -> ModelT:
    """`value` as the model. A refusal names the places and kinds of errors and quotes no values."""
    try:
        return model.model_validate(value)
    except ValidationError as error:
        errors = error.errors(include_url=False, include_input=False, include_context=False)
        places = [
            f"{'.'.join(map(str, item['loc'])) or 'body'}: {item['msg']}"
            for item in errors[:ERRORS_SHOWN]
        ]
        raise refuse("; ".join(places)) from None


def parameters(query: MultiMapping[str]) -> dict[str, str | list[str]]:
    """Query parameters; one that is repeated is a list."""
    values = {name: query.getall(name) for name in query}
    return {name: given if len(given) > 1 else given[0] for name, given in values.items()}


@web.middleware
async def errors_as_json(request: web.Request, handler: Handler) -> web.StreamResponse:
    if "%00" in request.raw_path:
        return refusal_response(invalid("The address contains the character NUL."))
    try:
        return await handler(request)
    except Refusal as refusal:
        return refusal_response(refusal)
    except web.HTTPException as error:
        code = HTTP_CODES.get(error.status, "http_error")
        response = refusal_response(Refusal(error.status, code, error.reason))
        if "Allow" in error.headers:
            response.headers["Allow"] = error.headers["Allow"]
        return response
    except UNAVAILABLE as error:
        log.warning("database_unavailable", path=request.path, error=type(error).__name__)
        return refusal_response(Refusal(503, "unavailable", "The bank is out of reach."))
    except Exception:  # the trace is for the log, not for the caller
        log.exception("request_failed", path=request.path)
        return refusal_response(Refusal(500, "internal_error", "Something went wrong."))
