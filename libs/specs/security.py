"""The four headers that every request is signed by, as security schemes: all of them are needed."""

from __future__ import annotations

from libs.specs.schemas import Schema

_CANONICAL = """\
The lower-case hex HMAC-SHA256 of the canonical string, keyed with the UTF-8 of the secret. The canonical string has
seven parts joined by newlines: `v1`, the timestamp, the nonce, the subscription key, the method in upper case, the
request target exactly as sent (path and query), the lower-case hex SHA-256 of the raw body (of nothing without one).
"""

AUTHENTICATION: dict[str, tuple[str, str]] = {
    "SubscriptionKey": (
        "X-API-SUBSCRIPTION-KEY",
        "The public id of the key, `sub_` and at least 22 letters and digits: it names one partner or one customer.",
    ),
    "Timestamp": (
        "X-API-TIMESTAMP",
        "Unix time in whole seconds (not milliseconds), as decimal digits, within 300 s of the server's clock.",
    ),
    "Nonce": (
        "X-API-NONCE",
        "16 to 128 of `[A-Za-z0-9_-]`, made anew for each request, also for one that repeats another.",
    ),
    "Signature": ("X-API-SIGNATURE", _CANONICAL),
}
"""Header and description of each scheme."""

SCHEMES: dict[str, Schema] = {
    name: {"type": "apiKey", "in": "header", "name": header, "description": description}
    for name, (header, description) in AUTHENTICATION.items()
}
REQUIREMENT: list[dict[str, list[str]]] = [{name: [] for name in SCHEMES}]
"""One alternative, of all four."""
