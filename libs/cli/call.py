"""`bankside call`: sign a request, send it, show what came back."""

from __future__ import annotations

import asyncio
import http.client
import re
import shlex
import sys
import time
from http import HTTPStatus
from pathlib import Path
from typing import Annotated, Any
from uuid import uuid4

import aiohttp
import msgspec
from cyclopts import Parameter

from libs.cli.exit_status import REFUSED, UNKNOWN, status_of
from libs.cli.output import console, escape, one_line, pretty, print_json
from libs.client import settings
from libs.client.credentials import look_up, look_up_operator
from libs.client.errors import OperatorError, UnknownOutcome
from libs.client.transport import NoAnswer, NotSent, Response, Transport

IDEMPOTENCY_KEY = "Idempotency-Key"
_TARGET = re.compile(r"/[!\"$-~]*")
"""Printable ASCII from the slash on; no `#`, which is never sent."""


class _Envelope(msgspec.Struct):
    """What every success of the gateway to a write has."""

    data: msgspec.Raw


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
        idempotency_key: Sent as Idempotency-Key; a request that changes something gets a new one when not given. Give
            the same one to repeat a request that got no answer. The routes of /operator/... have none.
        header: A further header, as `NAME: VALUE`; may be repeated.
        json: Print one JSON document: status, request_id, body, of a write idempotency_key, and on 401 canonical.
    """
    if not _TARGET.fullmatch(path):
        raise OperatorError(
            f"PATH begins with / and is printable ASCII, percent-encoded: {path!r} is not."
        )
    if not re.fullmatch(r"[A-Za-z]{1,16}", method):
        raise OperatorError(f"METHOD is one of GET, POST, PUT, PATCH, DELETE: {method!r} is not.")
    headers = dict(_header(item) for item in header or ())
    is_operators, is_write = path.startswith("/operator"), method.upper() != "GET"
    if idempotency_key is None:
        idempotency_key = headers.pop(IDEMPOTENCY_KEY, None)
    if idempotency_key is None and is_write and not is_operators:
        idempotency_key = str(uuid4())
    if idempotency_key is not None:
        headers[IDEMPOTENCY_KEY] = idempotency_key
    body = _body(data)
    base_url = settings.operator_url() if is_operators else settings.base_url()
    credentials = look_up_operator(key) if is_operators else look_up(key)
    advice = _advice(idempotency_key, is_operators) if is_write else ""

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
        kind = UnknownOutcome if is_write else OperatorError
        raise kind(f"The gateway at {base_url} gave no whole answer ({error}). {advice}") from None
    except KeyboardInterrupt:
        if advice:
            print(one_line(advice), file=sys.stderr)
        raise
    milliseconds = (time.perf_counter() - started) * 1000
    if json:
        print_json(_as_document(response, idempotency_key))
    else:
        _show(response, milliseconds, idempotency_key)
    return _status_of_answer(response, is_write, advice)


def _status_of_answer(response: Response, is_write: bool, advice: str) -> int:
    """Raises:
    UnknownOutcome: a success to a write that is not the gateway's.
    """
    if 200 <= response.status < 300:
        if is_write and not _is_envelope(response.body):
            raise UnknownOutcome(f"That is no answer of the gateway. {advice}")
        return 0
    from libs.client.answers import error_of, is_fault, is_unknown  # noqa: PLC0415 - only where something is wrong: see `main`

    error = error_of(response)
    may_be_done = is_unknown(response) or is_fault(error) or status_of(error) == UNKNOWN
    return UNKNOWN if is_write and may_be_done else REFUSED


def _is_envelope(body: bytes) -> bool:
    try:
        msgspec.json.decode(body, type=_Envelope)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return False
    return True


def _advice(idempotency_key: str | None, is_operators: bool) -> str:
    """How to repeat a write that may have been carried out."""
    if is_operators or idempotency_key is None:
        return "It may have been carried out: look before you repeat it."
    # Joined to the option, since a key may begin with a dash.
    option = f"--idempotency-key={shlex.quote(idempotency_key)}"
    return f"It may have been carried out: repeat it with {option}, which has its effect once."


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
    return IDEMPOTENCY_KEY if name.lower() == IDEMPOTENCY_KEY.lower() else name, value.strip()


def _as_document(response: Response, idempotency_key: str | None) -> dict[str, Any]:
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
    if idempotency_key is not None:
        document["idempotency_key"] = idempotency_key
    if response.status == HTTPStatus.UNAUTHORIZED:
        document["canonical"] = response.canonical
    return document


def _show(response: Response, milliseconds: float, idempotency_key: str | None) -> None:
    out = console()
    colour = {2: "green", 4: "yellow"}.get(response.status // 100, "red")
    phrase = http.client.responses.get(response.status, "")
    notes = [f"{milliseconds:.0f} ms"]
    if (request_id := response.headers.get("X-Request-Id")) is not None:
        notes.append(f"request {escape(request_id)}")
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
