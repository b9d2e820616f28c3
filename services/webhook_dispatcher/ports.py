"""Ports to the network: checking a callback URL, and posting to it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Final, Protocol

LONGEST_RETRY_AFTER: Final = timedelta(hours=10)
"""The longest pause that an answer can ask for by Retry-After (interface §8): one that asks for more gets this."""


class AttemptOutcome(StrEnum):
    """The result of one attempt."""

    SUCCEEDED = "succeeded"
    REFUSED = "refused"
    """The endpoint answered with a status other than 2xx."""
    GONE = "gone"
    """The endpoint answered 410: it wants no more deliveries."""
    TIMED_OUT = "timed_out"
    UNREACHABLE = "unreachable"
    """No connection, no TLS session, a reset, or no name."""
    FORBIDDEN = "forbidden"
    """Deliveries may not go to the address. Nothing was sent. Subscribers see a name without an address."""
    NOT_TRIED = "not_tried"
    """Nothing was sent, for a reason of our own."""


@dataclass(frozen=True, slots=True)
class Post:
    """A signed delivery of a tenant's subscription, ready to be sent. `headers` do not name the host or the length."""

    tenant: str
    url: str
    headers: Mapping[str, str] = field(repr=False)
    body: bytes = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """How a post ended.

    Args:
        response_status: also of an answer that broke off or was not whole in time; `outcome` decides, not this.
        duration_ms: 0 when the name has no address that deliveries may go to.
        error: a short sentence without addresses of ours; None when the answer speaks for itself.
        response_body: at most 16 KiB, as text; what is not UTF-8 is replaced, control characters too.
        retry_after: when the answer (429, 503) asks to be tried again, at most `LONGEST_RETRY_AFTER` later; None when
            it does not, or says nothing usable.
    """

    outcome: AttemptOutcome
    attempted_at: datetime
    duration_ms: int
    response_status: int | None = None
    error: str | None = None
    response_body: str | None = field(default=None, repr=False)
    retry_after: datetime | None = None


class CallbackUrls(Protocol):
    async def check(self, url: str, tenant: str) -> None:
        """Return when deliveries of the tenant may go there as things are now.

        Raises:
            Invalid: they may not; names `callback_url` and why.
            Unavailable: that could not be found out by now.
        """
        ...


class Poster(Protocol):
    async def post(self, post: Post) -> Attempt:
        """Send once, within 15 s in all. Never raises for what the network or the endpoint does."""
        ...
