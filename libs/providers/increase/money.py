"""Money at Increase: integer cents."""

from __future__ import annotations

from decimal import Decimal

CENT = Decimal("0.01")


def cents_of(amount: Decimal) -> int:
    """Raises ValueError: the amount has a fraction of a cent."""
    cents = amount / CENT
    if cents != int(cents):
        raise ValueError("an amount has at most two decimals")
    return int(cents)


def amount_of(cents: int) -> Decimal:
    """With two decimals."""
    return Decimal(cents).scaleb(-2)
