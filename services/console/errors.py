"""Every failure as a page with one sentence."""

from __future__ import annotations

from http import HTTPStatus

import structlog
from aiohttp import web
from aiohttp.typedefs import Handler, Middleware

from libs.contracts.errors import BanksideError
from services.console.failures import sentence
from services.console.rendering import Renderer

_SENTENCES = {
    HTTPStatus.NOT_FOUND: "There is no such page.",
    HTTPStatus.METHOD_NOT_ALLOWED: "This page cannot be sent to.",
    HTTPStatus.REQUEST_ENTITY_TOO_LARGE: "The form is too large.",
}
_log = structlog.get_logger("console")


def as_pages(renderer: Renderer) -> Middleware:
    """A middleware. An answer that has begun is broken off instead, so that it does not look complete."""

    @web.middleware
    async def check(request: web.Request, handler: Handler) -> web.StreamResponse:
        try:
            return await handler(request)
        except BanksideError as error:
            if request.writer.output_size:
                raise
            status, said = error.status, sentence(error)
        except web.HTTPException as error:
            status = error.status
            said = _SENTENCES.get(HTTPStatus(status), error.text or error.reason)
        except Exception as error:
            _log.exception("page_failed", path=request.path, error=type(error).__name__)
            if request.writer.output_size:
                raise
            status, said = (
                HTTPStatus.INTERNAL_SERVER_ERROR,
                "The console failed at this page; its log says why.",
            )
        return renderer.page(request, "error.html", status=status, said=said)

    return check
