"""The endpoints for tests: `/simulate`, `/truth` and `/faults`. No token, no keys, no faults of their own."""

from __future__ import annotations

from aiohttp import web

from services.provider_sandbox.database import Database
from services.provider_sandbox.encoding import encode
from services.provider_sandbox.faults import FaultRule, Faults, UnknownOperation
from services.provider_sandbox.operations import Control, Read
from services.provider_sandbox.web import (
    json_response,
    parameters,
    read_content,
    unprocessable,
    validated,
)


def control_route(operation: Control, database: Database) -> web.RouteDef:
    """An operation of `/simulate` or `/truth`; its path is the whole path."""

    async def read(request: web.Request) -> web.Response:
        assert isinstance(operation, Read)
        query = validated(operation.query, parameters(request.query), unprocessable)
        async with database.reading() as connection:
            result = await operation.handle(connection, "", query)
        return json_response(200, encode(result))

    async def write(request: web.Request) -> web.Response:
        assert not isinstance(operation, Read)
        content = await read_content(request, unprocessable)
        body = validated(operation.body, content, unprocessable)
        async with database.transaction() as connection:
            result = await operation.handle(connection, request.match_info.get("id", ""), body)
        return json_response(200, encode(result))

    if isinstance(operation, Read):
        return web.get(operation.path, read)
    return web.route(operation.method, operation.path, write)


def fault_routes(faults: Faults) -> list[web.RouteDef]:
    async def put(request: web.Request) -> web.Response:
        content = await read_content(request, unprocessable)
        rule = validated(FaultRule, content, unprocessable)
        try:
            faults.put(rule)
        except UnknownOperation as error:
            raise unprocessable(str(error)) from error
        return json_response(200, encode(rule.model_dump()))

    async def delete(_: web.Request) -> web.Response:
        return json_response(200, encode({"removed": faults.clear()}))

    async def show(_: web.Request) -> web.Response:
        return json_response(200, encode(faults.standing()))

    return [
        web.put("/faults", put),
        web.delete("/faults", delete),
        web.get("/faults", show),
    ]
