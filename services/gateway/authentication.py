"""Who sent a request: the four headers checked in the order of the interface (§1), up to the signature.

The nonce is the admission's: it is recorded only after the signature has been verified.
"""

from __future__ import annotations

import re
import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime

from multidict import CIMultiDictProxy

from libs.contracts.errors import (
    InvalidSignature,
    MalformedCredentials,
    MissingCredentials,
    TimestampOutOfWindow,
    UnknownSubscriptionKey,
)
from libs.signing.request import body_digest, canonical_string, matches
from services.gateway.credentials import Credential, Credentials

HEADERS = ("X-API-SIGNATURE", "X-API-TIMESTAMP", "X-API-NONCE", "X-API-SUBSCRIPTION-KEY")

_FORMS = {
    "X-API-SIGNATURE": re.compile(r"[0-9a-f]{64}"),
    "X-API-TIMESTAMP": re.compile(r"[0-9]{1,20}"),
    "X-API-NONCE": re.compile(r"[A-Za-z0-9_-]{16,128}"),
    "X-API-SUBSCRIPTION-KEY": re.compile(r"sub_[A-Za-z0-9]{22,255}"),
}
_FORMS_IN_WORDS = {
    "X-API-SIGNATURE": "64 hex digits in lower case",
    "X-API-TIMESTAMP": "Unix time in whole seconds, 1 to 20 decimal digits",
    "X-API-NONCE": "16 to 128 of A-Z, a-z, 0-9, _ and -",
    "X-API-SUBSCRIPTION-KEY": "sub_ and 22 to 255 letters and digits",
}
MILLISECOND_DIGITS = 13
_UNKNOWN_KEY_SECRET = secrets.token_bytes(32)
"""Signs for keys that are not known, so that an unknown key costs the work of a known one."""


@dataclass(frozen=True, slots=True)
class Claim:
    """What the headers of a request say, of a key that is active and at a time within the window."""

    credential: Credential
    signature: str
    timestamp: str
    nonce: str


@dataclass(frozen=True, slots=True)
class Signed:
    """A request whose signature was verified."""

    credential: Credential
    timestamp: int
    nonce: str


def read_headers(headers: CIMultiDictProxy[str]) -> tuple[str, str, str, str]:
    """Signature, timestamp, nonce and subscription key as sent.

    Raises:
        MissingCredentials: with the names of the headers.
        MalformedCredentials: one is there twice, or not of its form.
    """
    sent = [list(headers.getall(name, ())) for name in HEADERS]
    missing = [name for name, values in zip(HEADERS, sent, strict=True) if not values]
    if missing:
        raise MissingCredentials(
            f"Missing header: {', '.join(missing)}.", extra={"headers": missing}
        )
    wrong = [
        name
        for name, values in zip(HEADERS, sent, strict=True)
        if len(values) != 1 or not _FORMS[name].fullmatch(values[0])
    ]
    if wrong:
        forms = "; ".join(f"{name} is {_FORMS_IN_WORDS[name]}" for name in wrong)
        raise MalformedCredentials(
            f"Not of the right form, or there twice: {forms}.", extra={"headers": wrong}
        )
    return sent[0][0], sent[1][0], sent[2][0], sent[3][0]


def claimed_key(headers: CIMultiDictProxy[str]) -> str | None:
    """The subscription key as sent, if there is one of that form."""
    name = HEADERS[-1]
    key = headers.get(name)
    return key if key is not None and _FORMS[name].fullmatch(key) else None


class Authentication:
    """Verifies signatures.

    Args:
        clock: seconds since 1970; the window is around it.
        show_canonical: have `InvalidSignature` show the canonical string that was expected; not in production.
    """

    def __init__(
        self,
        credentials: Credentials,
        *,
        window_seconds: int,
        show_canonical: bool,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._credentials = credentials
        self._window_seconds = window_seconds
        self._show_canonical = show_canonical
        self._clock = clock

    async def claim(self, headers: CIMultiDictProxy[str]) -> Claim:
        """Who the request says has signed it: all that can be judged without its body.

        Raises:
            Unauthenticated: one of its kinds but `InvalidSignature`, the first that applies.
        """
        signature, timestamp, nonce, subscription_key = read_headers(headers)
        credential = await self._credentials.find(subscription_key)
        now = self._clock()
        if credential is None or not credential.is_active(datetime.fromtimestamp(now, UTC)):
            matches(_UNKNOWN_KEY_SECRET, timestamp.encode(), signature)
            raise UnknownSubscriptionKey
        if abs(now - int(timestamp)) > self._window_seconds:
            looks = "; it looks like milliseconds" if len(timestamp) == MILLISECOND_DIGITS else ""
            raise TimestampOutOfWindow(
                f"The timestamp is too far from the server's clock{looks}: it is Unix time in whole seconds.",
                extra={"server_time": int(now)},
            )
        return Claim(credential, signature, timestamp, nonce)

    async def verify(
        self, claim: Claim, method: str, target: str, body: bytes, *, anew: bool = True
    ) -> Signed:
        """The request that the claim's key, as it is by now, has signed.

        Args:
            anew: of a signature that does not match, read the key again: its secret may have been rotated since it was
                read. False for callers who may not have the database asked each time; they wait for a second.

        Raises:
            InvalidSignature, UnknownSubscriptionKey.
        """
        signature = claim.signature
        subscription_key = claim.credential.principal.subscription_key
        # The body may come long after the headers: secrets, scopes and networks are those of now.
        credential = await self._credentials.find(subscription_key)
        if credential is None:
            raise UnknownSubscriptionKey
        canonical = canonical_string(
            claim.timestamp, claim.nonce, subscription_key, method, target, body_digest(body)
        )
        at = datetime.fromtimestamp(self._clock(), UTC)
        signed: Credential | None = credential
        is_signed = _signed_with(credential, at, canonical, signature)
        if anew and not is_signed:
            signed = await self._credentials.find(subscription_key, anew=True)
            is_signed = signed is not None and _signed_with(signed, at, canonical, signature)
        if signed is None or not is_signed:
            extra = (
                {"canonical_string": canonical.decode("utf-8", "replace")}
                if self._show_canonical
                else {}
            )
            raise InvalidSignature(extra=extra)
        return Signed(signed, int(claim.timestamp), claim.nonce)


def _signed_with(credential: Credential, at: datetime, canonical: bytes, signature: str) -> bool:
    # Every secret is tried, so that the time does not show which of them matched.
    return any([matches(secret, canonical, signature) for secret in credential.secrets(at)])  # noqa: C419
