"""Money in what is sent to `/simulate`: a JSON number or a decimal string, in whole cents, never a float."""

from __future__ import annotations

from decimal import Decimal, InvalidOperation
from typing import Annotated

from pydantic import BeforeValidator, Field

LARGEST_AMOUNT = Decimal("9999999999999999.99")


def _amount(value: object) -> object:
    if isinstance(value, str):
        try:
            return Decimal(value) if value.isascii() else value
        except InvalidOperation:
            return value
    return Decimal(value) if isinstance(value, int) and not isinstance(value, bool) else value


Amount = Annotated[
    Decimal,
    BeforeValidator(_amount),
    Field(gt=0, le=LARGEST_AMOUNT, decimal_places=2, allow_inf_nan=False),
]

SignedAmount = Annotated[
    Decimal,
    BeforeValidator(_amount),
    Field(ge=-LARGEST_AMOUNT, le=LARGEST_AMOUNT, decimal_places=2, allow_inf_nan=False),
]
