"""The HTTP applications, one for each listener: a route per row, the documents, and errors of routing as problems."""

from __future__ import annotations

import time
from collections.abc import Iterable

import structlog
from aiohttp import web
from aiohttp.typedefs import Handler

from libs.contracts.errors import (
    BanksideError,
    BodyTooLarge,
    InternalError,
    MethodNotAllowed,
    NotFound,
)
from libs.contracts.gateway_table import OPERATOR_OPERATIONS
from libs.contracts.model import build_validators
from libs.contracts.operation import Operation
from libs.contracts.request_context import RequestContext, request_context
from libs.contracts.table import PUBLIC_OPERATIONS
from libs.runtime.connections import Connections
from libs.runtime.request_handlers import SERVER
from libs.runtime.request_log import request_log
from libs.runtime.routes import Routes
from services.gateway.documents import Documents, add_documents, add_operator_document
from services.gateway.endpoint import Endpoints
from services.gateway.requests import MAX_BODY_BYTES, request_id_of
from services.gateway.responses import failure

NO_SUCH_PATH = "There is no such path: a path is written exactly as in the reference, without a slash at its end."

_log = structlog.get_logger("gateway")


def public_application(
    documents: Documents, endpoints: Endpoints, connections: Connections
) -> web.Application:
    """What partners and customers reach."""
    build_validators(row.command for row in PUBLIC_OPERATIONS)
    application, routes = _application(endpoints, connections, PUBLIC_OPERATIONS)
    add_documents(routes, documents)
    routes.add_unknown()
    return application


def operator_application(
    documents: Documents, endpoints: Endpoints, connections: Connections
) -> web.Application:
    """What operators reach, on a listener of its own."""
    application, routes = _application(endpoints, connections, OPERATOR_OPERATIONS)
    add_operator_document(routes, documents)
    routes.add_unknown()
    return application


def _application(
    endpoints: Endpoints, connections: Connections, rows: Iterable[Operation]
) -> tuple[web.Application, Routes]:
    application = web.Application(
        middlewares=[connections.middleware, routing_problems], client_max_size=MAX_BODY_BYTES + 1
    )
    routes = Routes(application.router)
    for operation in rows:
        if operation.method is not None and operation.path is not None:
            routes.add(operation.method, operation.path, endpoints.handler(operation))
    application.on_response_prepare.append(_name_server)
    application.on_response_prepare.append(connections.close_when_draining)
    return application, routes


async def _name_server(_: web.Request, response: web.StreamResponse) -> None:
    response.headers["Server"] = SERVER


@web.middleware
async def routing_problems(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Turn what the router refuses into a problem document."""
    started = time.perf_counter()
    unforeseen: web.HTTPException | None = None
    try:
        return await handler(request)
    except web.HTTPMethodNotAllowed as refusal:
        allowed = ", ".join(sorted(refusal.allowed_methods))
        error: BanksideError = MethodNotAllowed(headers={"Allow": allowed})
    except web.HTTPNotFound:
        error = NotFound(NO_SUCH_PATH)
    except web.HTTPRequestEntityTooLarge:
        error = BodyTooLarge()
    except web.HTTPException as exception:
        error, unforeseen = InternalError(), exception
    request_id = request_id_of(request)
    response = failure(error, request_id)
    response.headers["X-Request-Id"] = request_id
    request_context.set(RequestContext(request_id, None))
    if unforeseen is not None:
        _log.error("request_failed", status=unforeseen.status, exc_info=unforeseen)
    seconds = time.perf_counter() - started
    request_log.note("request_handled", None, error.code, seconds, status=error.status)
    return response
