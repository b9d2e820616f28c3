"""One call without its transport: what to send, what each answer means, how long to pause before a retry."""

from __future__ import annotations

import math
import re
import secrets
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from types import TracebackType
from typing import Any, Generic, NoReturn, Self, TypeVar
from urllib.parse import quote, urlencode
from uuid import UUID, uuid4

import httpx

from bankside_client import errors
from bankside_client.advice import ADVICE
from bankside_client.answers import Answer
from bankside_client.backoff import Backoff, lengthened
from bankside_client.errors import BanksideError, OutcomeUnknown, ServerError, Unavailable
from bankside_client.exact_json import decode, encode, read
from bankside_client.request_signature import body_digest, canonical_string, sign
from bankside_client.retry_after import retry_after

T = TypeVar("T")

VERSION = "0.1.0"
CONNECT_SECONDS = 5.0
ANSWER_BYTES = 16 * 1024 * 1024
PROBLEM_TYPE = "application/problem+json"
RETRIES = Backoff(first_seconds=0.2, longest_seconds=30.0, jitter=0.25)
RETRY_AFTER_JITTER = 0.25
LONGEST_RETRY_AFTER = timedelta(days=1)
RATE_LIMITED = "rate_limited"
IN_PROGRESS = "idempotency_in_progress"
NONCE_REUSED = "nonce_reused"
UNDER_WAY = frozenset({IN_PROGRESS, NONCE_REUSED})
"""An earlier send may be carried out. Every send has a fresh nonce: only a copy of it, made on its way, used that."""
RETRIED = frozenset({"unavailable", RATE_LIMITED}) | UNDER_WAY
"""Codes after which a request is sent again: nothing was started, or the first request will have its answer."""
RETRIED_STATUSES = frozenset({429, 503})
"""Answers of these are retried under a code of a later gateway, too: nothing was started."""
OF_ONE_SEND = frozenset({401, 403, 408, 413, 415, 422, 500})
"""Refused before the Idempotency-Key is looked at, or a fault of the gateway: they say nothing of an earlier send."""
MAY_BE_DONE = "An earlier send may have been carried out."
HEADER_VALUE = re.compile(r"(?:[!-~](?:[ -~]*[!-~])?)?")
HEADER_CHARACTERS = "up to 255 printable ASCII characters, without a blank at either end"
"""The gateway refuses a longer one, and an empty key."""
STATE_FILTERS = ("state", "status")
"""Items leave the pages of a list that one of these filters, as they change."""
NOT_SENT = (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout, httpx.ProxyError)
"""Raised before the request is sent; ProxyError where the proxy is asked for its connection to the gateway."""
OF_A_CONNECTION = (httpx.RequestError, OSError)
"""After these a request is sent again. Anything else may have been thrown into the call, as the time limit of a job,
and ends it.
"""
UNREADABLE = (ValueError, TypeError, KeyError, AttributeError, ArithmeticError)


@dataclass(frozen=True)
class Operation(Generic[T]):
    """A row of the interface.

    Args:
        data: the type of a success's `data`.
        pages: how a list goes on: by `page`, by `after` (an event's id), or not at all.
        takes_body: without values the body is `{}`; that of the others is empty.
        headers: those fields that travel as headers, rather than in the query or the body.
    """

    method: str
    path: str
    data: Any
    pages: str | None = None
    takes_body: bool = False
    headers: tuple[str, ...] = ()

    @property
    def takes_idempotency_key(self) -> bool:
        return self.method != "GET"


@dataclass(frozen=True)
class Gateway:
    """Where calls go, and how.

    Args:
        attempts: at most this many sends of one request.
        patience_seconds: no retry begins later than this after the first send.
        timeout_seconds: of one send.
    """

    base_url: str
    subscription_key: str
    secret: str = field(repr=False)
    attempts: int = 5
    patience_seconds: float = 60.0
    timeout_seconds: float = 30.0

    def __post_init__(self) -> None:
        url = httpx.URL(self.base_url)
        if url.scheme not in {"http", "https"} or not url.host:
            raise ValueError(
                "The base URL is not that of a gateway, such as https://bank.example.com."
            )
        if not HEADER_VALUE.fullmatch(self.subscription_key):
            raise ValueError(
                "The subscription key has a character that no header takes, such as a line break."
            )
        for name in ("attempts", "timeout_seconds"):
            limit = getattr(self, name)
            if not (math.isfinite(limit) and limit > 0):
                raise ValueError(f"{name} is no positive finite number.")
        if not (math.isfinite(self.patience_seconds) and self.patience_seconds >= 0):
            raise ValueError("patience_seconds is negative, or no finite number.")

    @property
    def timeout(self) -> httpx.Timeout:
        """Of 20 s and more, waiting for a free connection and opening one, by TCP and TLS, end before the whole: it is
        then known that nothing was sent.
        """
        return httpx.Timeout(
            self.timeout_seconds, connect=CONNECT_SECONDS, pool=self.timeout_seconds / 2
        )


def signed_headers(
    gateway: Gateway, method: str, target: str, body: bytes, timestamp: str, nonce: str
) -> dict[str, str]:
    """The four headers that authenticate a request. `target` is its path and query as they are sent."""
    canonical = canonical_string(
        timestamp, nonce, gateway.subscription_key, method, target, body_digest(body)
    )
    return {
        "X-API-SUBSCRIPTION-KEY": gateway.subscription_key,
        "X-API-TIMESTAMP": timestamp,
        "X-API-NONCE": nonce,
        "X-API-SIGNATURE": sign(gateway.secret.encode(), canonical),
    }


class Exchange(Generic[T]):
    """A call from its first request to its answer.

    Send `request()`; tell `answered` or `lost` what came of it; each gives the answer, or the seconds to pause before
    the next `request()`, or raises what the call ends with. All of it, the pauses too, is in a `with` of the exchange.
    """

    def __init__(
        self,
        gateway: Gateway,
        operation: Operation[T],
        path_values: tuple[str | UUID, ...],
        values: Mapping[str, Any],
        idempotency_key: str | None,
    ) -> None:
        self._gateway = gateway
        self._operation = operation
        self._url, self._headers, self._body = _parts(
            gateway.base_url, operation, path_values, values
        )
        self._key = idempotency_key
        if operation.takes_idempotency_key:
            # An empty one is the caller's mistake, which the gateway refuses: a fresh one in its place would be another
            # with each call.
            self._key = str(uuid4()) if idempotency_key is None else idempotency_key
            self._headers["Idempotency-Key"] = self._key
        for name, value in self._headers.items():
            if not HEADER_VALUE.fullmatch(value):
                raise ValueError(f"{name} takes {HEADER_CHARACTERS}; nothing was sent.")
        self._request_id = ""
        self._attempt = 0
        self._give_up_at = time.monotonic() + gateway.patience_seconds
        self._lost: Exception | None = None
        self._is_under_way = False

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """A time limit of a job or a cancellation that ends a write after a send takes its key with it: an exception as
        `OutcomeUnknown`, what is no `Exception`, such as `CancelledError`, in a note.

        Raises:
            OutcomeUnknown: an exception was thrown into the write after a send.
        """
        is_write_sent = self._operation.takes_idempotency_key and self._attempt > 0
        if error is None or isinstance(error, BanksideError) or not is_write_sent:
            return
        if isinstance(error, Exception):
            detail = "The call was ended before its answer came."
            raise self._own(OutcomeUnknown, errors.NO_ANSWER, detail) from error
        error.add_note(
            f"A write was sent under the Idempotency-Key {self._key}, and may have been carried out."
        )

    def request(self) -> httpx.Request:
        """The request, signed anew."""
        request_id = str(uuid4())
        method, target = self._operation.method, self._url.raw_path.decode("ascii")
        signed = signed_headers(
            self._gateway,
            method,
            target,
            self._body,
            str(int(time.time())),
            secrets.token_urlsafe(24),
        )
        request = httpx.Request(
            method,
            self._url,
            headers={**self._headers, **signed, "X-Request-Id": request_id},
            content=self._body or None,
            extensions={"timeout": self._gateway.timeout.as_dict()},
        )
        self._attempt += 1
        self._request_id = request_id
        return request

    def answered(self, response: httpx.Response, body: bytes) -> Answer[T] | float:
        """Raises:
        BanksideError: the answer is an error after which the request is not sent again.
        """
        self._request_id = response.headers.get("X-Request-Id") or self._request_id
        if response.is_success:
            return self._success(response, body)
        try:
            problem = decode(body)
        except ValueError:
            problem = None
        media_type = response.headers.get("Content-Type", "").partition(";")[0].strip().lower()
        match problem:
            case {"code": str(code), "detail": str(detail)} if media_type == PROBLEM_TYPE:
                error = self._error(response.status_code, code, detail, problem)
            case {"detail": [*values]} if response.status_code == 422:
                detail = _sentences(values) or "The answer is 422."
                error = self._error(422, "invalid", detail, problem)
            case _ if response.status_code >= 500:
                # Of a proxy, which may have passed the request on, or of a gateway that broke down amid it.
                detail = f"{response.status_code} came, which is no answer of the gateway's."
                return self._no_answer(response, detail)
            case _ if response.status_code == 429:
                error = self._error(429, RATE_LIMITED, "The answer is 429, a proxy's.", {})
            case _:
                detail = f"The answer is {response.status_code} {response.reason_phrase}."
                error = self._error(response.status_code, errors.UNREADABLE_ANSWER, detail, {})
        if not _is_retried(error):
            self._end(error)
        self._is_under_way |= error.code in UNDER_WAY
        return self._pause(error, response)

    def _end(self, error: BanksideError) -> NoReturn:
        """Raise what the call ends with: a refusal of this send, where an earlier one may have been carried out, leaves
        the outcome of a write unknown.
        """
        is_of_one_send = error.status in OF_ONE_SEND or error.code == errors.UNREADABLE_ANSWER
        if not (is_of_one_send and self._may_be_done):
            raise error
        detail = f"{error.detail} {MAY_BE_DONE}"
        raise self._own(OutcomeUnknown, errors.NO_ANSWER, detail, error.status) from error

    @property
    def _may_be_done(self) -> bool:
        """Whether an earlier send of a write may have been carried out."""
        is_open = self._lost is not None or self._is_under_way
        return is_open and self._operation.takes_idempotency_key

    def lost(self, cause: Exception) -> float:
        """No connection, or no whole answer.

        Raises:
            BanksideError: the request is not sent again.
        """
        if isinstance(cause, NOT_SENT):
            because = f": {cause}" if str(cause) else ""
            detail = _sentence(f"There is no connection to {self._url.host}{because}")
            error = self._own(Unavailable, errors.NO_CONNECTION, detail)
            error.__cause__ = cause
            return self._pause(error, None)
        if not isinstance(cause, OF_A_CONNECTION):
            raise self._own(OutcomeUnknown, errors.NO_ANSWER, "No answer came.") from cause
        return self._no_answer(None, "No answer came.", cause)

    def _no_answer(
        self, response: httpx.Response | None, detail: str, cause: Exception | None = None
    ) -> float:
        error = self._own(OutcomeUnknown, errors.NO_ANSWER, detail)
        error.__cause__ = cause
        self._lost = error
        return self._pause(error, response)

    def _pause(self, error: BanksideError, response: httpx.Response | None) -> float:
        """The seconds that the answer asks for, else the backoff's; both with jitter."""
        pause = RETRIES.pause_seconds(self._attempt)
        now = datetime.now(UTC)
        value = None if response is None else response.headers.get("Retry-After")
        if (until := retry_after(value, now, LONGEST_RETRY_AFTER)) is not None:
            pause = lengthened((until - now).total_seconds(), RETRY_AFTER_JITTER)
        is_late = time.monotonic() + pause > self._give_up_at
        if self._attempt < self._gateway.attempts and not is_late:
            return pause
        is_told = error.code in {IN_PROGRESS, errors.NO_ANSWER}
        if is_told or not self._may_be_done:
            raise error
        detail = f"No answer came. {MAY_BE_DONE}"
        raise self._own(OutcomeUnknown, errors.NO_ANSWER, detail) from error

    def _success(self, response: httpx.Response, body: bytes) -> Answer[T]:
        try:
            envelope = decode(body)
            as_of_date = envelope.get("as_of_date")
            return Answer(
                data=read(self._operation.data, envelope["data"]),
                message=envelope["message"],
                request_id=self._request_id,
                replayed=response.headers.get("Idempotent-Replayed") == "true",
                pagination=envelope.get("pagination"),
                as_of_date=None if as_of_date is None else date.fromisoformat(as_of_date),
            )
        except UNREADABLE as error:
            detail = "The answer cannot be read."
            status = response.status_code
            if self._operation.takes_idempotency_key:
                raise self._own(OutcomeUnknown, errors.NO_ANSWER, detail, status) from error
            raise self._own(ServerError, errors.UNREADABLE_ANSWER, detail, status) from error

    def _error(
        self, status: int, code: str, detail: str, problem: Mapping[str, Any]
    ) -> BanksideError:
        kind = errors.error_class(status, code)
        if kind is ServerError and status >= 500 and self._operation.takes_idempotency_key:
            kind = OutcomeUnknown  # a fault says nothing certain about what was done before it
        return kind(
            code,
            detail,
            self._request_id,
            status=status,
            problem=problem,
            idempotency_key=self._key,
        )

    def _own(
        self, kind: type[BanksideError], code: str, detail: str, status: int | None = None
    ) -> BanksideError:
        return kind(code, detail, self._request_id, status=status, idempotency_key=self._key)


def _is_retried(error: BanksideError) -> bool:
    return error.code in RETRIED or (error.status in RETRIED_STATUSES and error.code not in ADVICE)


def is_read_ahead(operation: Operation[list[T]], values: Mapping[str, Any]) -> bool:
    """Whether all pages are read before the first item is given."""
    return operation.pages == "page" and any(values.get(name) is not None for name in STATE_FILTERS)


def next_values(
    operation: Operation[list[T]], values: Mapping[str, Any], page: Answer[list[T]]
) -> dict[str, Any] | None:
    """The query of the page that follows; None after the last one."""
    if not page.data:
        return None
    values = _given(values)
    if page.as_of_date is not None:
        # The pages are all of the load of the first one, also when another one comes between them.
        values = {"load_date": page.as_of_date, **values}
    last: Any = page.data[-1]
    match operation.pages, page.pagination:
        case "after", _:
            return {**values, "after": last.id}
        case "page", {"limit": int(limit), "total": int(total)}:
            number = values.get("page", 1)
            return {**values, "page": number + 1} if number * limit < total else None
        case "page", _:
            return {**values, "page": values.get("page", 1) + 1}
    return None


def _parts(
    base_url: str,
    operation: Operation[Any],
    path_values: tuple[str | UUID, ...],
    values: Mapping[str, Any],
) -> tuple[httpx.URL, dict[str, str], bytes]:
    """The URL, headers and body of a call. None is left out of headers and query; in a body it is null."""
    path = operation.path
    for value in path_values:
        if value is None or value == "":
            raise ValueError("An id is missing.")
        text = str(value) if isinstance(value, UUID) else value
        if text in {".", ".."}:
            raise ValueError(f"{text} is no id.")
        start, end = path.index("{"), path.index("}")
        path = path[:start] + quote(text, safe="") + path[end + 1 :]
    headers = {"User-Agent": f"bankside-client-python/{VERSION}", "Accept": "application/json"}
    headers |= {
        name: str(value) for name, value in _given(values).items() if name in operation.headers
    }
    rest = {name: value for name, value in values.items() if name not in operation.headers}
    body = b""
    if operation.takes_body:
        body = encode(rest)
        headers["Content-Type"] = "application/json"
    else:
        query = {
            name: value.isoformat() if isinstance(value, date) else value
            for name, value in _given(rest).items()
        }
        path += f"?{urlencode(query)}" if query else ""
    return httpx.URL(base_url.rstrip("/") + path), headers, body


def _given(values: Mapping[str, Any]) -> dict[str, Any]:
    """Without the parameters that are None."""
    return {name: value for name, value in values.items() if value is not None}


def _sentences(values: list[Any]) -> str:
    """Each value that is not allowed: where it is, and why. A proxy's 422 may list other things, which are left out."""
    said = []
    for value in values:
        match value:
            case {"loc": [*parts], "msg": str(why)}:
                said.append(_sentence(f"{'.'.join(map(str, parts))}: {why}"))
            case {"msg": str(why)}:
                said.append(_sentence(why))
    return " ".join(said)


def _sentence(text: str) -> str:
    """With a full stop, unless the text has its own end."""
    return text if text.endswith((".", "?", "!")) else f"{text}."
