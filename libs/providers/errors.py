"""A provider's refusal, as its transport tells it. What a refusal of a write means is decided in `keyed_write`."""

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
