"""Every failure as a page with one sentence."""

from __future__ import annotations

from collections.abc import Mapping
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
_PASSED_ON = ("Allow", "Retry-After")
"""Headers of an error that its page has, too."""
_log = structlog.get_logger("console")


def as_pages(renderer: Renderer) -> Middleware:
    """A middleware. An answer that has begun is broken off instead, so that it does not look complete."""

    @web.middleware
    async def check(request: web.Request, handler: Handler) -> web.StreamResponse:
        given: Mapping[str, str] = {}
        try:
            return await handler(request)
        except BanksideError as error:
            if request.writer.output_size:
                raise
            status, said, given = error.status, sentence(error), error.headers
        except web.HTTPException as error:
            status, given = error.status, error.headers
            said = _SENTENCES.get(HTTPStatus(status), error.text or error.reason)
        except Exception as error:
            _log.exception("page_failed", path=request.path, error=type(error).__name__)
            if request.writer.output_size:
                raise
            status, said = (
                HTTPStatus.INTERNAL_SERVER_ERROR,
                "The console failed at this page; its log says why.",
            )
        page = renderer.page(request, "error.html", status=status, said=said)
        page.headers.update({name: given[name] for name in _PASSED_ON if name in given})
        return page

    return check
