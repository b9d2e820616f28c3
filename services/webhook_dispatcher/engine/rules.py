"""The numbers that deliveries go by (interface §8). What an operator may set is set; the rest is decided here."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

MINUTE, HOUR = 60.0, 3600.0

RETRY_SECONDS = (
    5.0,
    5 * MINUTE,
    30 * MINUTE,
    2 * HOUR,
    5 * HOUR,
    10 * HOUR,
    14 * HOUR,
    20 * HOUR,
    24 * HOUR,
)
POST_SECONDS = 15.0
"""An attempt takes no longer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """
    Args:
        retry_seconds: the pause after each failed attempt; after the attempt that follows the last, a delivery failed.
        slots: attempts that this process has under way at most, of all subscriptions together.
        lease_seconds: after a crash, another process goes on with a delivery when so long has passed. Longer than
            `POST_SECONDS`, by what writing the outcome may take.
        retention: how long events, deliveries and attempts are kept; whole days.
    """

    retry_seconds: tuple[float, ...] = RETRY_SECONDS
    slots: int = 256
    lease_seconds: float = 30.0
    retention: timedelta = timedelta(days=30)

    def __post_init__(self) -> None:
        if self.lease_seconds <= POST_SECONDS:
            raise ValueError(f"a lease is longer than the {POST_SECONDS:g} s of an attempt")
