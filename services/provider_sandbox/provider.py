"""The endpoints of one provider API: token, key, faults, then the operation and its answer.

A request whose caller has disconnected is carried out all the same, as at a bank: a timeout at the caller does not mean
that there is no effect.
"""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Awaitable, Callable
from datetime import timedelta

from aiohttp import web
from prometheus_client import Counter, Histogram

from services.provider_sandbox.callers import Callers
from services.provider_sandbox.database import Database
from services.provider_sandbox.encoding import encode
from services.provider_sandbox.faults import Faults
from services.provider_sandbox.idempotency import Answer, Request, answer_once
from services.provider_sandbox.operations import (
    Api,
    BatchedRead,
    BatchedWrite,
    NoQuery,
    OfCaller,
    Operation,
    Operations,
    Query,
    Read,
    Refusal,
    Write,
)
from services.provider_sandbox.read_batcher import ReadBatcher
from services.provider_sandbox.web import (
    invalid,
    json_response,
    malformed,
    parameters,
    read_content,
    validated,
)
from services.provider_sandbox.write_batcher import WriteBatcher

REQUESTS = Counter(
    "bankside_sandbox_requests", "Requests to the providers", ["api", "operation", "status"]
)
SECONDS = Histogram("bankside_sandbox_request_seconds", "Time to answer them", ["api", "operation"])

IDEMPOTENCY_KEY = re.compile("[\x20-\x7e]{1,255}")
NO_QUERY = NoQuery()

Perform = Callable[[], Awaitable[Answer]]


class Dropped(Exception):
    """The connection is closed without an answer because a fault says so."""


class Provider:
    """One API of the bank under `/<api>`. It works while each of its `write_batchers` runs."""

    def __init__(
        self,
        api: Api,
        operations: Operations,
        database: Database,
        faults: Faults,
        callers: Callers,
        remembered: timedelta | None,
    ) -> None:
        """`remembered`: how long it knows an Idempotency-Key; None: for ever."""
        self._api: Api = api
        self._operations = operations
        self._database = database
        self._faults = faults
        self._callers = callers
        self._remembered = remembered
        self.write_batchers = [
            WriteBatcher(database, operation)
            for operation in operations
            if isinstance(operation, BatchedWrite)
        ]

        self._read_batchers = {
            operation.name: ReadBatcher(database, operation)
            for operation in operations
            if isinstance(operation, BatchedRead)
        }

    def routes(self) -> list[web.RouteDef]:
        return [self._route(operation) for operation in self._operations]

    def _route(self, operation: Operation) -> web.RouteDef:
        method = method_of(operation)
        duration = SECONDS.labels(self._api, operation.name)

        async def handle(request: web.Request) -> web.Response:
            started = time.perf_counter()
            status = "error"
            try:
                response = await self._respond(operation, request)
                status = str(response.status)
            except Refusal as refusal:
                status = str(refusal.status)
                raise
            except Dropped:
                status = "dropped"
                if request.transport is not None:
                    request.transport.abort()
                response = web.Response()
            finally:
                REQUESTS.labels(self._api, operation.name, status).inc()
                duration.observe(time.perf_counter() - started)
            return response

        return web.route(method, f"/{self._api}{operation.path}", handle)

    async def _respond(self, operation: Operation, request: web.Request) -> web.Response:
        sent = request.headers.get("Authorization", "")
        allowed = self._callers.authorise(sent, self._api, operation.name)
        perform = (
            self._reading(operation, request, allowed)
            if isinstance(operation, Read)
            else self._reading_together(operation, request)
            if isinstance(operation, BatchedRead)
            else await self._writing(operation, request)
        )
        answer = await self._under_faults(operation, perform)
        response = json_response(answer.status, answer.body)
        if answer.replayed:
            response.headers["Idempotent-Replayed"] = "true"
        return response

    def _reading(
        self, operation: Read[Query], request: web.Request, allowed: frozenset[str]
    ) -> Perform:
        target = request.match_info.get("id", "")
        query: Query = NO_QUERY
        if operation.query is OfCaller:
            validated(NoQuery, parameters(request.query), invalid)
            query = OfCaller(operations=allowed)
        elif request.query_string or operation.query is not NoQuery:
            sent = request.headers
            headers = {name: sent[name] for name in operation.headers if name in sent}
            query = validated(operation.query, parameters(request.query) | headers, invalid)

        async def perform() -> Answer:
            async with self._database.reading() as connection:
                return Answer(200, encode(await operation.handle(connection, target, query)))

        return perform

    def _reading_together(self, operation: BatchedRead, request: web.Request) -> Perform:
        target = request.match_info["id"]
        if request.query_string:
            validated(NoQuery, parameters(request.query), invalid)

        async def perform() -> Answer:
            return Answer(200, encode(await self._read_batchers[operation.name].answer(target)))

        return perform

    async def _writing(self, operation: Operation, request: web.Request) -> Perform:
        assert not isinstance(operation, Read | BatchedRead)
        target = request.match_info.get("id", "")
        key = _idempotency_key(request)
        content = await read_content(request, malformed)
        body = validated(operation.body, content, malformed)
        wanted = Request(self._api, key, operation.name, request.path, content, self._remembered)
        if isinstance(operation, BatchedWrite):
            if not operation.key.fullmatch(key):
                raise malformed(
                    f"Idempotency-Key: for {operation.name} it is a UUID in lower case."
                )
            [batcher] = [g for g in self.write_batchers if g.name == operation.name]
            return lambda: batcher.answer(wanted, body)

        async def perform() -> Answer:
            return await answer_once(
                self._database,
                wanted,
                lambda connection: operation.handle(connection, target, body),
            )

        return perform

    async def _under_faults(self, operation: Operation, perform: Perform) -> Answer:
        """Latency first; then what prevents the effect; then the effect; then what hides it.

        A fault that hides an effect strikes only where there was one: a refusal is answered unchanged.
        """
        api, name, apply = self._api, operation.name, self._faults.apply
        for rule in apply(api, name, "latency"):
            await asyncio.sleep(float(rule.milliseconds or 0) / 1000)
        if apply(api, name, "refuse"):
            status = 403 if isinstance(operation, Read | BatchedRead) else 422
            raise Refusal(status, "refused", "The bank refuses.")
        if apply(api, name, "error"):
            raise _internal_error()
        answer = await perform()
        if apply(api, name, "duplicate_reply"):
            answer = await perform()
        if answer.status < 400:
            if apply(api, name, "fail_after_success"):
                raise _internal_error()
            if apply(api, name, "accept_then_drop"):
                raise Dropped
        return answer


def method_of(operation: Operation) -> str:
    match operation:
        case Read() | BatchedRead():
            return "GET"
        case Write():
            return operation.method
        case BatchedWrite():
            return "POST"


def _internal_error() -> Refusal:
    return Refusal(500, "internal_error", "Something went wrong.")


def _idempotency_key(request: web.Request) -> str:
    keys = request.headers.getall("Idempotency-Key", [])
    if not keys:
        raise Refusal(400, "idempotency_key_required", "Send an Idempotency-Key.")
    if len(keys) > 1 or not IDEMPOTENCY_KEY.fullmatch(keys[0]):
        raise malformed("Idempotency-Key: send one, of 1 to 255 printable ASCII characters.")
    return keys[0]
