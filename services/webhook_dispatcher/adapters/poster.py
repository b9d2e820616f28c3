"""One signed POST to a callback URL, bounded in time and memory, its outcome named.

What counts as an answer: a status line, the headers, and either the whole body or its first 16 KiB, within the time.
Then the status alone decides. The body is a record for a subscriber that looks into a delivery; after 16 KiB the
connection is closed. A 2xx that trickles is therefore a timeout, one that is endless but quick a success, and one that
breaks off a failure. In each case the status is recorded with the attempt.
"""

from __future__ import annotations

import errno
import re
import ssl
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import datetime

import aiohttp
import structlog

from libs.retry_after import retry_after
from services.webhook_dispatcher.adapters.callback_targets import Target, Unfit, target_of
from services.webhook_dispatcher.adapters.callback_urls import NOT_PUBLIC, CallbackPolicy
from services.webhook_dispatcher.adapters.dialing import Connections, ForbiddenAddress, Lease
from services.webhook_dispatcher.adapters.lookups import (
    OWN_TROUBLE,
    Lookups,
    NotLookedUp,
    NotResolved,
    NotResolvedInTime,
)
from services.webhook_dispatcher.ports import LONGEST_RETRY_AFTER, Attempt, AttemptOutcome, Post

MAX_ANSWER_BYTES = 16 * 1024
ASKS_FOR_LATER = frozenset({429, 503})
REDIRECTS = frozenset({301, 302, 303, 307, 308})
_CONTROL = re.compile(r"[\0-\x08\x0b\x0c\x0e-\x1f]")
"""Control characters other than tab, line feed and carriage return. PostgreSQL stores no NUL, and the others are six
bytes of JSON each.
"""
SHORTEST_SECONDS = 0.001
"""What is left of the time at least: 0 means no limit."""


@dataclass(frozen=True, slots=True)
class Timeouts:
    """Seconds (interface §8). Looking a name up has a limit of its own, in `Lookups`.

    Args:
        connect: to dial and, with TLS, to agree on a session.
        total: everything.
    """

    connect: float = 5.0
    total: float = 15.0


@dataclass(slots=True)
class _Answer:
    """As much of an answer as came."""

    status: int | None = None
    retry_after: str | None = None
    parts: list[bytes] = field(default_factory=list)


class AiohttpPoster:
    """Safe for as many posts at one time as its connections are limited to. See `open_poster`."""

    def __init__(
        self,
        policy: CallbackPolicy,
        connections: Connections,
        timeouts: Timeouts,
        clock: Callable[[], datetime],
    ) -> None:
        self._policy = policy
        self._connections = connections
        self._clock = clock
        self._timeouts = timeouts
        self._limits = _limits(timeouts.total, timeouts.connect)
        self._log = structlog.get_logger("poster")

    async def post(self, post: Post) -> Attempt:
        """Send once, or again where a kept connection ended before an answer, within 15 s in all. Never raises for what
        the network or the endpoint does.
        """
        attempted_at, started = self._clock(), time.perf_counter()
        answer = _Answer()
        try:
            await self._exchange(post, answer)
            outcome, error = _outcome(answer.status)
        except (aiohttp.ClientError, TimeoutError, OSError, NotResolved) as failure:
            outcome, error = self._failed(failure)
        except Unfit as unfit:
            outcome, error = AttemptOutcome.FORBIDDEN, str(unfit)
        except ForbiddenAddress:
            outcome, error = AttemptOutcome.FORBIDDEN, NOT_PUBLIC
        except Exception as unforeseen:
            # Any error is of this one endpoint, and must not end the deliveries to all others.
            self._log.error("post_failed", error=type(unforeseen).__name__)
            outcome, error = AttemptOutcome.UNREACHABLE, "It could not be sent."
        return Attempt(
            outcome=outcome,
            attempted_at=attempted_at,
            # The time of a lookup, too, would show which names the internal network has.
            duration_ms=0 if error == NOT_PUBLIC else round((time.perf_counter() - started) * 1000),
            response_status=answer.status,
            error=error,
            response_body=None if answer.status is None else _text(b"".join(answer.parts)),
            retry_after=retry_after(answer.retry_after, self._clock(), LONGEST_RETRY_AFTER)
            if answer.status in ASKS_FOR_LATER
            else None,
        )

    async def _exchange(self, post: Post, answer: _Answer) -> None:
        target = target_of(post.url)
        target_class = self._policy.class_of(target)
        ends_at = time.monotonic() + self._timeouts.total
        lease = self._connections.lease(target_class, post.tenant)
        try:
            await _request(lease, target, post, answer, self._limits)
        except (aiohttp.ServerDisconnectedError, aiohttp.ClientOSError):
            if lease.has_dialled or answer.status is not None:
                raise
        else:
            return
        # The endpoint closed a kept connection, perhaps as the request was on its way: it is sent again on a new one.
        left = max(ends_at - time.monotonic(), SHORTEST_SECONDS)
        lease = self._connections.lease(target_class, post.tenant, keeps=False)
        await _request(lease, target, post, answer, _limits(left, self._timeouts.connect))

    def _failed(self, failure: Exception) -> tuple[AttemptOutcome, str]:
        """The outcome, and a sentence for the subscriber, without addresses and internals."""
        match failure:
            case NotLookedUp():
                return AttemptOutcome.NOT_TRIED, "The host name could not be looked up yet."
            case NotResolvedInTime():
                return AttemptOutcome.TIMED_OUT, "The host name was not resolved in time."
            case NotResolved():
                return AttemptOutcome.UNREACHABLE, NOT_PUBLIC
            case aiohttp.ConnectionTimeoutError():
                seconds = self._timeouts.connect
                return AttemptOutcome.TIMED_OUT, f"There was no connection within {seconds:g} s."
            case TimeoutError():
                return (
                    AttemptOutcome.TIMED_OUT,
                    f"No whole answer came within {self._timeouts.total:g} s.",
                )
            case aiohttp.ClientConnectorCertificateError():
                return AttemptOutcome.UNREACHABLE, _about_certificate(failure.certificate_error)
            case aiohttp.ClientConnectorSSLError():
                return AttemptOutcome.UNREACHABLE, "No TLS session could be agreed on."
            case aiohttp.ClientConnectorError() if failure.os_error.errno in OWN_TROUBLE:
                self._log.warning("cannot_dial", reason=failure.os_error.strerror)
                return AttemptOutcome.NOT_TRIED, "No connection could be opened yet."
            case aiohttp.ClientConnectorError():
                return AttemptOutcome.UNREACHABLE, _about_dialling(failure.os_error)
            case aiohttp.ClientPayloadError():
                return AttemptOutcome.UNREACHABLE, "The connection broke within the answer."
            case aiohttp.ClientResponseError():
                return (
                    AttemptOutcome.UNREACHABLE,
                    "The answer is not HTTP, or its headers are too long.",
                )
            case _:
                return AttemptOutcome.UNREACHABLE, "The connection broke before an answer came."


def _limits(total: float, connect: float) -> aiohttp.ClientTimeout:
    return aiohttp.ClientTimeout(total=total, sock_connect=connect, ceil_threshold=3600)


async def _request(
    lease: Lease, target: Target, post: Post, answer: _Answer, limits: aiohttp.ClientTimeout
) -> None:
    try:
        response = await lease.session.post(
            target.request,
            data=post.body,
            headers=post.headers,
            timeout=limits,
            allow_redirects=False,
        )
        try:
            answer.status = response.status
            answer.retry_after = response.headers.get("Retry-After")
            await _read(response.content, answer.parts)
        finally:
            # Whole answers have given their connection back already; closing is for the others.
            response.close()
    finally:
        lease.release()


def _about_dialling(error: OSError) -> str:
    if error.errno == errno.EADDRNOTAVAIL:
        structlog.get_logger("poster").warning("cannot_dial", reason=error.strerror)
    match error.errno:
        case errno.ECONNREFUSED:
            return "The connection was refused."
        case errno.ECONNRESET:
            return "The connection was reset as it was made."
        case errno.EHOSTUNREACH | errno.ENETUNREACH:
            return "There is no way to the host."
        case _:
            return "No connection could be made."


def _outcome(status: int | None) -> tuple[AttemptOutcome, str | None]:
    if status is not None and 200 <= status < 300:
        return AttemptOutcome.SUCCEEDED, None
    if status == 410:
        return AttemptOutcome.GONE, None
    if status in REDIRECTS:
        return AttemptOutcome.REFUSED, "Redirects are not followed."
    return AttemptOutcome.REFUSED, None


def _about_certificate(error: Exception) -> str:
    reason = error.verify_message if isinstance(error, ssl.SSLCertVerificationError) else ""
    return f"The certificate is not valid{f': {reason}' if reason else ''}.".replace("..", ".")


async def _read(content: aiohttp.StreamReader, parts: list[bytes]) -> None:
    """Read an answer's body, up to its bound."""
    left = MAX_ANSWER_BYTES
    while left and not content.at_eof():
        part = await content.read(left)
        left -= len(part)
        parts.append(part)


def _text(body: bytes) -> str:
    """As it is stored: UTF-8 without control characters, other bytes replaced, at most `MAX_ANSWER_BYTES`."""
    text = _CONTROL.sub("\N{REPLACEMENT CHARACTER}", body.decode("utf-8", "replace"))
    return text.encode()[:MAX_ANSWER_BYTES].decode("utf-8", "ignore")


@asynccontextmanager
async def open_poster(
    policy: CallbackPolicy,
    *,
    connections: int,
    connection_seconds: float = 60.0,
    timeouts: Timeouts = Timeouts(),
    lookups: Lookups | None = None,
    ssl_context: ssl.SSLContext | None = None,
    clock: Callable[[], datetime],
) -> AsyncIterator[AiohttpPoster]:
    """A poster with connections and lookups of its own.

    Args:
        connections: at least the number of posts at one time.
        connection_seconds: how long a connection is used at most.
        lookups: instead of those of the system; closed with the poster.
        ssl_context: instead of the system's authorities.
    """
    lookups = lookups or Lookups()
    open_connections = Connections(
        policy,
        lookups,
        limit=connections,
        lifetime_seconds=connection_seconds,
        ssl_context=ssl_context,
    )
    try:
        yield AiohttpPoster(policy, open_connections, timeouts, clock)
    finally:
        await open_connections.close()
        await lookups.close()
