"""How one attempt at a provider ends without a usable answer, and which conclusions that allows.

ProviderRefusal ── a definite no; what it means for a write is decided by the provider's adapter
AttemptFailed ──── no usable answer, because of a `Failure`
"""

from __future__ import annotations

from enum import StrEnum

from libs.contracts.errors import BanksideError, ProviderError, ProviderTimeout, Unavailable

NO_DECISION = frozenset({401, 403, 408, 425, 429})
"""With these statuses a provider says that it did not process the request, so they never decide a write. They are
`Failure.TURNED_AWAY`.
"""


class ProviderRefusal(Exception):
    """The provider answered with a definite no (4xx in its own error shape): nothing was changed.

    `message` is the provider's sentence; log lines and `str()` carry status and code only.
    """

    def __init__(self, status: int, code: str, message: str) -> None:
        super().__init__(f"{status} {code}")
        self.status = status
        self.code = code
        self.message = message


class Failure(StrEnum):
    """Why an attempt has no usable answer. The value is the metric's `outcome`."""

    NO_TIME = "no_time"
    CIRCUIT_OPEN = "circuit_open"
    NOT_CONNECTED = "not_connected"
    TURNED_AWAY = "turned_away"
    """A status of `NO_DECISION`: our credentials, our rate and how a request arrived are not the caller's fault. A
    proxy may answer so to a repetition of what it had passed on.
    """
    TIMED_OUT = "timed_out"
    BROKEN = "broken"
    SERVER_ERROR = "server_error"
    UNREADABLE = "unreadable"

    @property
    def is_certainly_without_effect(self) -> bool:
        return self in _WITHOUT_EFFECT

    @property
    def is_strike(self) -> bool:
        """It counts against the provider in its circuit, and a read may be tried again."""
        return self in _STRIKES


_WITHOUT_EFFECT = frozenset({Failure.NO_TIME, Failure.CIRCUIT_OPEN, Failure.NOT_CONNECTED})
_STRIKES = frozenset(
    {Failure.NOT_CONNECTED, Failure.TIMED_OUT, Failure.BROKEN, Failure.SERVER_ERROR}
)


class AttemptFailed(Exception):
    """One attempt ended so.

    Args:
        status: that of the answer, when there was one.
        retry_after_seconds: how long the provider wants no request, as it said; the transport bounds it.
    """

    def __init__(
        self,
        failure: Failure,
        status: int | None = None,
        *,
        retry_after_seconds: float | None = None,
    ) -> None:
        super().__init__(failure.value if status is None else f"{failure.value} {status}")
        self.failure = failure
        self.status = status
        self.retry_after_seconds = retry_after_seconds


def read_error(failure: Failure) -> BanksideError:
    """What a caller of ours gets when a read has failed so."""
    match failure:
        case Failure.TIMED_OUT | Failure.NO_TIME:
            return ProviderTimeout()
        case Failure.CIRCUIT_OPEN | Failure.NOT_CONNECTED | Failure.TURNED_AWAY:
            return Unavailable("A provider cannot be reached. Try again shortly.")
        case Failure.BROKEN | Failure.SERVER_ERROR | Failure.UNREADABLE:
            return ProviderError()
