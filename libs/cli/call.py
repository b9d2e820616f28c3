"""`bankside call`: sign a request, send it, show what came back."""

from __future__ import annotations

import asyncio
import http.client
import re
import sys
import time
from http import HTTPStatus
from pathlib import Path
from typing import Annotated, Any
from uuid import uuid4

import aiohttp
import msgspec
from cyclopts import Parameter

from libs.cli.output import console, escape, pretty, print_json
from libs.client import settings
from libs.client.credentials import look_up, look_up_operator
from libs.client.errors import OperatorError
from libs.client.transport import NoAnswer, NotSent, Response, Transport

_TARGET = re.compile(r"/[!\"$-~]*")
"""Printable ASCII from the slash on; no `#`, which is never sent."""


def call(
    method: str,
    path: str,
    /,
    *,
    data: str | None = None,
    key: str | None = None,
    idempotency_key: str | None = None,
    header: Annotated[list[str] | None, Parameter(negative=())] = None,
    json: Annotated[bool, Parameter(negative=())] = False,
) -> int:
    """Sign a request and send it once; show the status and the body, and on 401 what was signed.

    Such as `bankside call GET /partner/reseller/accounts`, or `bankside call POST /customer/wire --key shop --data
    @wire.json`.

    Args:
        method: GET, POST, PUT, PATCH or DELETE.
        path: Path and query, sent and signed exactly as given.
        data: The body: JSON, @FILE for the content of a file, @- for standard input. Sent as it is.
        key: The key to sign with: a saved name or a subscription key; by default that of the demo partner, and for
            /operator/... that of the operator.
        idempotency_key: Sent as Idempotency-Key; a request that changes something gets a new one when not given.
        header: A further header, as `NAME: VALUE`; may be repeated.
        json: Print one JSON document: status, request_id, body, and on 401 canonical.
    """
    if not _TARGET.fullmatch(path):
        raise OperatorError(
            f"PATH begins with / and is printable ASCII, percent-encoded: {path!r} is not."
        )
    if not re.fullmatch(r"[A-Za-z]{1,16}", method):
        raise OperatorError(f"METHOD is one of GET, POST, PUT, PATCH, DELETE: {method!r} is not.")
    headers = dict(_header(item) for item in header or ())
    is_given = any(name.lower() == "idempotency-key" for name in headers)
    if idempotency_key is None and method.upper() != "GET" and not is_given:
        idempotency_key = str(uuid4())
    if idempotency_key is not None:
        headers["Idempotency-Key"] = idempotency_key
    body = _body(data)
    if path.startswith("/operator"):
        base_url, credentials = settings.operator_url(), look_up_operator(key)
    else:
        base_url, credentials = settings.base_url(), look_up(key)

    async def send() -> Response:
        async with aiohttp.ClientSession(trust_env=False) as session:
            transport = Transport(base_url, credentials, session)
            return await transport.send(method.upper(), path, body, headers)

    started = time.perf_counter()
    try:
        response = asyncio.run(send())
    except NotSent:
        raise OperatorError(
            f"The gateway at {base_url} cannot be reached: is the stack up (make status)?"
        ) from None
    except NoAnswer as error:
        raise OperatorError(f"The gateway at {base_url} gave no whole answer ({error}).") from None
    milliseconds = (time.perf_counter() - started) * 1000
    if json:
        print_json(_as_document(response))
    else:
        _show(response, milliseconds, idempotency_key)
    return 0 if response.status < 400 else 1


def _body(data: str | None) -> bytes:
    if data is None or not data.startswith("@"):
        return (data or "").encode("utf-8", "surrogateescape")
    if data == "@-":
        return sys.stdin.buffer.read()
    try:
        return Path(data[1:]).read_bytes()
    except OSError as error:
        raise OperatorError(f"{data[1:]} cannot be read: {error.strerror}.") from None


def _header(item: str) -> tuple[str, str]:
    name, colon, value = item.partition(":")
    if not colon or not re.fullmatch(r"[A-Za-z0-9-]+", name) or not value.isprintable():
        raise OperatorError(f"A header is given as 'NAME: VALUE': {item!r} is not.")
    return name, value.strip()


def _as_document(response: Response) -> dict[str, Any]:
    body: Any = response.body.decode("utf-8", "replace") or None
    try:
        msgspec.json.decode(response.body)
        body = msgspec.Raw(response.body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        pass  # not JSON: shown as text
    document = {
        "status": response.status,
        "request_id": response.headers.get("X-Request-Id"),
        "body": body,
    }
    if response.status == HTTPStatus.UNAUTHORIZED:
        document["canonical"] = response.canonical
    return document


def _show(response: Response, milliseconds: float, idempotency_key: str | None) -> None:
    out = console()
    colour = {2: "green", 4: "yellow"}.get(response.status // 100, "red")
    phrase = http.client.responses.get(response.status, "")
    notes = [f"{milliseconds:.0f} ms"]
    if (request_id := response.headers.get("X-Request-Id")) is not None:
        notes.append(f"request {request_id}")
    if idempotency_key is not None:
        notes.append(f"idempotency key {escape(idempotency_key)}")
    if response.headers.get("Idempotent-Replayed") == "true":
        notes.append("replayed")
    out.print(f"[bold {colour}]{response.status} {phrase}[/]  [dim]{' · '.join(notes)}[/]")
    if response.body:
        out.print(pretty(response.body))
    if response.status == HTTPStatus.UNAUTHORIZED:
        out.print("\n[bold]This was signed[/] [dim](seven lines, no newline after the last)[/]:")
        out.print(response.canonical, markup=False)
