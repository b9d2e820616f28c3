"""Evaluating a wire policy: its limits, and whether a wire needs approval (interface §9). Amounts are in USD."""

from __future__ import annotations

from dataclasses import dataclass, fields
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

from libs.contracts.errors import LimitExceeded
from libs.contracts.wire_policies import WireLimit

CEILED = ("per_wire_limit", "daily_limit", "daily_count")
"""The limits to which the operator of Bankside may set a ceiling."""


@dataclass(frozen=True, slots=True)
class Policy:
    """None: no such limit, or no approval for this reason."""

    per_wire_limit: Decimal | None = None
    daily_limit: Decimal | None = None
    daily_count: int | None = None
    approval_threshold: Decimal | None = None
    new_payee_hours: int | None = None

    @property
    def is_empty(self) -> bool:
        return all(getattr(self, field.name) is None for field in fields(self))

    @property
    def has_daily_limits(self) -> bool:
        return self.daily_limit is not None or self.daily_count is not None

    def values(self) -> dict[str, Any]:
        return {field.name: getattr(self, field.name) for field in fields(self)}

    def within(self, ceilings: Policy) -> Policy:
        """This policy, with each limit at most its ceiling."""
        limited = {
            name: min(
                (
                    each
                    for each in (getattr(self, name), getattr(ceilings, name))
                    if each is not None
                ),
                default=None,
            )
            for name in CEILED
        }
        return Policy(**self.values() | limited)

    def beyond(self, ceilings: Policy) -> list[str]:
        """The limits that are above their ceilings."""
        return [
            name
            for name in CEILED
            if (own := getattr(self, name)) is not None
            and (ceiling := getattr(ceilings, name)) is not None
            and own > ceiling
        ]

    def require_within_limits(self, amount: Decimal, used: Usage) -> None:
        """Raises LimitExceeded: the wire may not be sent beside those that the day has."""
        if self.per_wire_limit is not None and amount > self.per_wire_limit:
            raise _exceeded(WireLimit.PER_WIRE, self.per_wire_limit, Decimal(0))
        if self.daily_limit is not None and used.amount + amount > self.daily_limit:
            raise _exceeded(WireLimit.DAILY_AMOUNT, self.daily_limit, used.amount)
        if self.daily_count is not None and used.count >= self.daily_count:
            raise _exceeded(WireLimit.DAILY_COUNT, self.daily_count, used.count)

    def needs_approval(self, amount: Decimal, linked_at: datetime, now: datetime) -> bool:
        """Whether a wire of this amount needs the approval of a second key.

        Args:
            linked_at: when the external account was linked.
        """
        if self.approval_threshold is not None and amount >= self.approval_threshold:
            return True
        if self.new_payee_hours is None:
            return False
        return now - linked_at < timedelta(hours=self.new_payee_hours)


NO_POLICY = Policy()


@dataclass(frozen=True, slots=True)
class Usage:
    """The wires of a customer that count against the limits of a day at the bank."""

    amount: Decimal
    count: int


NOTHING_USED = Usage(Decimal(0), 0)


def _exceeded(limit: WireLimit, allowed: Decimal | int, used: Decimal | int) -> LimitExceeded:
    return LimitExceeded(
        f"The wire is beyond the limit {limit.value} of the customer's wire policy.",
        extra={"limit": limit.value, "allowed": allowed, "used": used},
    )
