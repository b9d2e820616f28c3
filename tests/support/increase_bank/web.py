"""HTTP: keys, parameters, idempotency and faults around every operation."""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from aiohttp import web

from tests.support.increase_bank import statements
from tests.support.increase_bank.calls import Call, Conduct, Done, Operation
from tests.support.increase_bank.errors import (
    ApiError,
    ApiMethodNotFound,
    InsufficientPermissions,
    InternalError,
    InvalidApiKey,
    InvalidOperation,
    InvalidParameters,
    KeyAlreadyUsed,
    MalformedRequest,
    PrivateFeature,
    RateLimited,
)
from tests.support.increase_bank.faults import Faults
from tests.support.increase_bank.kinds import MODELS, kind_of
from tests.support.increase_bank.limits import check_limits
from tests.support.increase_bank.postings import find
from tests.support.increase_bank.shapes import AnswerNotOfItsType, Json, checked, nested
from tests.support.increase_bank.store import Store

May = Literal["everything", "read"]
MOST_BYTES = 1024 * 1024
KEY_CHARACTERS = 200
MOST_VIOLATIONS = 1_000
JSON = "application/json"


@dataclass
class Bank:
    """The server's state beyond its store."""

    store: Store
    keys: Mapping[str, May]
    conduct: Conduct = field(default_factory=Conduct)
    faults: Faults = field(default_factory=Faults)
    violations: list[Json] = field(default_factory=list)
    """What was asked that Increase's types do not allow, and what would have been answered so."""
    requests: dict[str, int] = field(default_factory=dict)
    """How often each operation was asked for."""

    def violation(self, operation: str, problem: object) -> None:
        if len(self.violations) < MOST_VIOLATIONS:
            self.violations.append({"operation": operation, "problem": problem})


@dataclass(frozen=True)
class Reply:
    text: str
    object_id: str | None = None
    replayed: bool = False


class Dropped(Exception):
    """The connection ends without an answer."""


def handler(
    bank: Bank, operation: Operation
) -> Callable[[web.Request], Awaitable[web.StreamResponse]]:
    async def handle(request: web.Request) -> web.StreamResponse:
        bank.requests[operation.name] = bank.requests.get(operation.name, 0) + 1
        try:
            reply = await _answered(bank, operation, request)
        except ApiError as error:
            if isinstance(error, InvalidParameters | MalformedRequest):
                bank.violation(operation.name, error.document())
            return refusal(error)
        except AnswerNotOfItsType as error:
            bank.violation(operation.name, str(error))
            return refusal(InternalError(str(error)))
        except Dropped:
            return _drop(request)
        headers = {"Idempotent-Replayed": "true"} if reply.replayed else {}
        return web.Response(text=reply.text, content_type=JSON, headers=headers)

    return handle


def refusal(error: ApiError) -> web.Response:
    headers = {}
    if isinstance(error, RateLimited) and error.has_header:
        headers["Retry-After"] = str(error.fields["retry_after"])
    return web.Response(
        status=error.status,
        text=json.dumps(error.document()),
        content_type=JSON,
        headers=headers,
    )


def _drop(request: web.Request) -> web.StreamResponse:
    if request.transport is not None:
        request.transport.abort()
    return web.Response(status=500)


async def _answered(bank: Bank, operation: Operation, request: web.Request) -> Reply:
    raw = await request.read()
    _authorize(bank, operation, request)
    await _faults_before(bank, operation)
    call = _call(bank, operation, request, raw)
    reply = _handled(bank, operation, call)
    return _faults_after(bank, operation, call, reply)


def _authorize(bank: Bank, operation: Operation, request: web.Request) -> None:
    scheme, _, key = request.headers.get("Authorization", "").partition(" ")
    if not key:
        raise InvalidApiKey(reason="no_header")
    may = bank.keys.get(key) if scheme.lower() == "bearer" else None
    if may is None:
        raise InvalidApiKey(reason="no_credential")
    if may == "read" and operation.method != "GET" and not operation.reader:
        raise InsufficientPermissions(f"This key only reads; it was sent with {operation.name}.")


async def _faults_before(bank: Bank, operation: Operation) -> None:
    faults, name = bank.faults, operation.name
    if not faults.standing:
        return
    slow = faults.struck(name, "latency")
    if slow is not None:
        await asyncio.sleep((slow.milliseconds or 0) / 1000)
    limited = faults.struck(name, "rate_limit")
    if limited is not None:
        raise RateLimited(limited.retry_after, has_header=limited.has_header)
    if faults.struck(name, "refuse") is not None:
        if operation.method == "GET":
            raise InsufficientPermissions("A test ordered this refusal.")
        raise InvalidOperation("A test ordered this refusal.")
    if faults.struck(name, "private_feature") is not None:
        raise PrivateFeature
    if faults.struck(name, "error") is not None:
        raise InternalError("A test ordered this error.")
    if faults.struck(name, "drop") is not None:
        raise Dropped


def _faults_after(bank: Bank, operation: Operation, call: Call, reply: Reply) -> Reply:
    faults, name = bank.faults, operation.name
    if not faults.standing:
        return reply
    if faults.struck(name, "duplicate_reply") is not None:
        reply = _handled(bank, operation, call)
    made = reply.object_id if call.key is not None else None
    if made is not None and faults.struck(name, "key_conflict") is not None:
        raise KeyAlreadyUsed(made)
    if faults.struck(name, "fail_after_success") is not None:
        raise InternalError("A test ordered this error, after the effect.")
    if faults.struck(name, "accept_then_drop") is not None:
        raise Dropped
    return reply


def _call(bank: Bank, operation: Operation, request: web.Request, raw: bytes) -> Call:
    """The request, checked. Raises InvalidParameters, MalformedRequest."""
    query, body = nested(request.query), {}
    if operation.method == "GET":
        if raw:
            raise MalformedRequest("A GET has no body.")
        given = query
    else:
        if query:
            raise InvalidParameters.of(next(iter(query)), "is no parameter of this operation")
        given = body = _body(request, raw)
    if operation.takes is None:
        if given:
            raise InvalidParameters.of(next(iter(given)), "is no parameter of this operation")
    elif operation.method == "GET":
        query = checked(operation.takes, query, strict=False)
    else:
        checked(operation.takes, body)
        check_limits(operation.name, body)
    key = request.headers.get("Idempotency-Key") if operation.method == "POST" else None
    if key is not None and not 1 <= len(key) <= KEY_CHARACTERS:
        raise InvalidParameters.of("Idempotency-Key", f"has more than {KEY_CHARACTERS} characters")
    return Call(
        bank.store,
        bank.conduct,
        request.match_info.get("id", ""),
        body,
        query,
        key,
        "" if key is None else _digest(request.path, body),
    )


def _body(request: web.Request, raw: bytes) -> Json:
    if not raw:
        return {}
    if request.content_type != JSON:
        raise MalformedRequest("The body must be application/json.")
    try:
        body = json.loads(raw)
    except ValueError:
        raise MalformedRequest("The body is not JSON.") from None
    if not isinstance(body, dict):
        raise MalformedRequest("The body must be an object.")
    return body


def _handled(bank: Bank, operation: Operation, call: Call) -> Reply:
    """Do it, once per key. Raises ApiError."""
    if operation.method == "GET":
        text = operation.run(call)
        assert isinstance(text, str)
        return Reply(text)
    with bank.store.writing():
        used = _used(bank.store, call.key)
        if used is not None and used[0] != call.digest:
            raise KeyAlreadyUsed(used[1])
        if used is not None:
            return Reply(_text(bank.store, used[1]), used[1], replayed=True)
        done = operation.run(call)
        assert isinstance(done, Done)
        if call.key is not None:
            values = (call.key, call.digest, done.id)
            bank.store.execute("INSERT INTO used_key VALUES (?, ?, ?)", values)
        return Reply(_text(bank.store, done.id), done.id)


def _digest(path: str, body: Json) -> str:
    text = json.dumps([path, body], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()


def _used(store: Store, key: str | None) -> tuple[Any, ...] | None:
    if key is None:
        return None
    return store.row("SELECT request, object_id FROM used_key WHERE key = ?", (key,))


def _text(store: Store, object_id: str) -> str:
    kind = kind_of(object_id)
    return store.text(kind, object_id) if kind in MODELS else find(store, object_id)


async def unknown(bank: Bank, request: web.Request) -> web.Response:
    bank.violation(f"{request.method} {request.path}", "there is no such operation")
    return refusal(ApiMethodNotFound())


async def file_contents(bank: Bank, request: web.Request) -> web.Response:
    try:
        _authorize(bank, CONTENTS, request)
        url = statements.contents_url(bank.store, bank.conduct, request.match_info["id"])
    except ApiError as error:
        return refusal(error)
    return web.Response(status=307, headers={"Location": url})


CONTENTS = Operation("GET", "/files/{id}/contents", None, lambda _: "")


async def download(bank: Bank, request: web.Request) -> web.Response:
    """A file by its signed link: 403 when the link is late or altered."""
    query = request.query
    document = statements.download(
        bank.store,
        request.match_info["id"],
        query.get("expires", ""),
        query.get("signature", ""),
    )
    if document is None:
        return web.Response(status=403, text="The link has expired.")
    disposition = 'attachment; filename="statement.pdf"'
    return web.Response(
        body=document,
        content_type="application/pdf",
        headers={"Content-Disposition": disposition},
    )
