"""Limits of deliveries (interface §8): those that an operator sets, with their defaults, and those that are fixed."""

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
"""The longest duration of an attempt."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeliverySettings:
    """How deliveries are tried, and how long they are kept.

    Args:
        retry_seconds: the pause after the first, second, … failed attempt. A delivery has failed for good when the
            attempt after the last pause fails.
        slots: attempts that this process has under way at most, of all subscriptions together.
        lease_seconds: after a crash, the time until another process claims the delivery. Longer than `POST_SECONDS`, by
            the time that recording the attempt may take.
        retention: how long events, deliveries and attempts are kept; whole days.
    """

    retry_seconds: tuple[float, ...] = RETRY_SECONDS
    slots: int = 256
    lease_seconds: float = 30.0
    retention: timedelta = timedelta(days=30)

    def __post_init__(self) -> None:
        if self.lease_seconds <= POST_SECONDS:
            raise ValueError(f"a lease is longer than the {POST_SECONDS:g} s of an attempt")
