"""Signatures of webhook deliveries: Standard Webhooks, symmetric (https://www.standardwebhooks.com).

What is signed is `<id>.<timestamp>.<body>`; the `webhook-signature` header holds one `v1,<base64>` for each
active secret, separated by spaces, so that a receiver that knows either the old or the new one accepts.
"""

from base64 import b64decode, b64encode
from binascii import Error as NotBase64
from collections.abc import Iterable
from hmac import compare_digest, new
from typing import Final

SECRET_PREFIX: Final = "whsec_"  # noqa: S105 - what every secret begins with
SHORTEST_KEY_BYTES: Final = 16
"""Ours have 32, Standard Webhooks has 24 to 64. A key that is empty, as of an empty variable, is known to all."""
VERSION: Final = "v1"
TOLERANCE_SECONDS: Final = 300


class WebhookSecretError(ValueError):
    """The secret is not `whsec_` and base64 of a key that is long enough. The message never holds it."""


class WebhookSignatureError(ValueError):
    """The delivery was not signed with a known secret, or too long ago; the message says which."""


def key_of(secret: str) -> bytes:
    """The HMAC key within a secret.

    Raises:
        WebhookSecretError: the secret does not have its form.
    """
    if not secret.startswith(SECRET_PREFIX):
        raise WebhookSecretError(f"a webhook secret begins with {SECRET_PREFIX}")
    try:
        key = b64decode(secret[len(SECRET_PREFIX) :], validate=True)
    except NotBase64:
        raise WebhookSecretError("a webhook secret is base64 after its prefix") from None
    if len(key) < SHORTEST_KEY_BYTES:
        raise WebhookSecretError(
            f"the key of a webhook secret is {SHORTEST_KEY_BYTES} bytes at least"
        )
    return key


def sign(key: bytes, message_id: str, timestamp: str, body: bytes) -> str:
    """One signature, `v1,<base64>`. `timestamp` is Unix seconds as sent in `webhook-timestamp`."""
    mac = new(key, f"{message_id}.{timestamp}.".encode("utf-8", "surrogateescape"), "sha256")
    mac.update(body)
    return f"{VERSION},{b64encode(mac.digest()).decode('ascii')}"


def signature_header(keys: Iterable[bytes], message_id: str, timestamp: str, body: bytes) -> str:
    """The `webhook-signature` header: a signature with each key, in their order."""
    return " ".join(sign(key, message_id, timestamp, body) for key in keys)


def verify(
    key: bytes,
    *,
    message_id: str,
    timestamp: str,
    signatures: str,
    body: bytes,
    now: float,
    tolerance_seconds: int = TOLERANCE_SECONDS,
) -> None:
    """What a receiver does with the three headers and the raw body; returns when the delivery is genuine.

    Args:
        signatures: the `webhook-signature` header; versions other than v1 are passed over.
        now: Unix time in seconds, by the receiver's clock.

    Raises:
        WebhookSignatureError: none of the signatures is by this key, or the timestamp is not within the
            tolerance of `now`.
    """
    if not (timestamp.isascii() and timestamp.isdigit() and len(timestamp) <= 15):
        raise WebhookSignatureError("webhook-timestamp is not Unix seconds")
    if not abs(now - int(timestamp)) <= tolerance_seconds:  # so that NaN is no tolerance
        raise WebhookSignatureError("webhook-timestamp is not within the tolerance")
    expected = sign(key, message_id, timestamp, body).encode("ascii")
    found = False
    for candidate in signatures.split(" "):
        found |= compare_digest(expected, candidate.encode("utf-8", "surrogateescape"))
    if not found:
        raise WebhookSignatureError("no signature in webhook-signature is by this secret")
