"""Requests as they go over the wire, made and signed before they are measured.

The signature is computed here from the interface's text, as a caller would, by no library of ours.
"""

from __future__ import annotations

import hmac
import os
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from urllib.parse import urlsplit

from tests.support.api import Key


@dataclass(frozen=True)
class Target:
    """Where requests go. `path`: the request target as signed."""

    base_url: str
    method: str
    path: str

    @property
    def host(self) -> str:
        return urlsplit(self.base_url).netloc


def signed(target: Target, key: Key, body: bytes = b"") -> Callable[[], bytes]:
    """Makes requests that differ in their nonces. Each may be sent once, within five minutes."""
    digest = sha256(body).hexdigest()
    secret = key.secret.encode()
    head = f"{target.method} {target.path} HTTP/1.1\r\nHost: {target.host}\r\n"
    described = f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n" if body else ""
    fixed = f"{head}{described}X-API-SUBSCRIPTION-KEY: {key.subscription_key}\r\n"

    def make() -> bytes:
        timestamp, nonce = int(time.time()), os.urandom(16).hex()
        canonical = f"v1\n{timestamp}\n{nonce}\n{key.subscription_key}\n{target.method}\n{target.path}\n{digest}"
        signature = hmac.digest(secret, canonical.encode(), "sha256").hex()
        return (
            f"{fixed}X-API-TIMESTAMP: {timestamp}\r\nX-API-NONCE: {nonce}\r\n"
            f"X-API-SIGNATURE: {signature}\r\n\r\n"
        ).encode() + body

    return make


def plain(target: Target, **headers: str) -> Callable[[], bytes]:
    """The same request every time."""
    lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    request = (
        f"{target.method} {target.path} HTTP/1.1\r\nHost: {target.host}\r\n{lines}\r\n".encode()
    )
    return lambda: request


def write_requests(path: Path, make: Callable[[], bytes], count: int) -> None:
    """Each as its length on a line, then its bytes: what `wrk.lua` reads."""

    def records() -> Iterator[bytes]:
        for _ in range(count):
            request = make()
            yield b"%d\n%b" % (len(request), request)

    with path.open("wb") as file:
        file.writelines(records())
