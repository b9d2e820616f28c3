"""What a provider's adapter has to tell apart: a definite no, certainly not sent, and unknown.

Reads raise contract errors directly (they can be repeated, so the caller may be told at once) and `ProviderRefusal`.
Writes raise only the three errors below: what to tell the caller depends on what the service had begun.
"""

from __future__ import annotations

NO_DECISION = frozenset({401, 403, 408, 425, 429})
"""By these statuses a provider says that it did not look at the request: not the request's fault, so never its end."""


class ProviderRefusal(Exception):
    """The provider answered with a definite no (4xx in its own error shape): nothing was changed.

    `message` is the provider's sentence; log lines and `str()` carry status and code only.
    """

    def __init__(self, status: int, code: str, message: str) -> None:
        super().__init__(f"{status} {code}")
        self.status = status
        self.code = code
        self.message = message


class ProviderNotReached(Exception):
    """Nothing was sent, or the provider said that it did nothing: connection refused, circuit open, no time left."""


class ProviderUnknown(Exception):
    """The write may have had its effect: timeout, 5xx, broken connection, unreadable answer."""
