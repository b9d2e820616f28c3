"""The signature of a request: HMAC-SHA256 over seven parts joined by newlines.

Everything is signed as it was sent: the target keeps its encoding, the method is the only part
that is normalised. Pure functions; which secrets are active and whether a nonce was seen is for
the gateway to know.
"""

from hashlib import sha256
from hmac import compare_digest, digest
from typing import Final

VERSION: Final = "v1"
EMPTY_BODY_DIGEST: Final = sha256(b"").hexdigest()


def body_digest(body: bytes) -> str:
    """Lower-case hex SHA-256 of the raw body; of nothing when there is no body."""
    return sha256(body).hexdigest() if body else EMPTY_BODY_DIGEST


def canonical_string(
    timestamp: str,
    nonce: str,
    subscription_key: str,
    method: str,
    target: str,
    body_sha256_hex: str,
) -> bytes:
    """What is signed, as UTF-8. `target` is the path and query exactly as sent.

    No part may hold a newline, or two requests could share one string: the caller refuses such
    headers beforehand, and no request line can carry one.
    """
    return (
        f"{VERSION}\n{timestamp}\n{nonce}\n{subscription_key}\n"
        f"{method.upper()}\n{target}\n{body_sha256_hex}"
    ).encode("utf-8", "surrogateescape")


def sign(secret: bytes, canonical: bytes) -> str:
    """Lower-case hex signature, keyed with the UTF-8 bytes of the secret."""
    return digest(secret, canonical, "sha256").hex()


def matches(secret: bytes, canonical: bytes, signature: str) -> bool:
    """Whether `signature` is that of `canonical`, in time independent of where they differ."""
    expected = sign(secret, canonical).encode("ascii")
    return compare_digest(expected, signature.encode("utf-8", "surrogateescape"))
