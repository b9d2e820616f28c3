"""Money in what is sent to the bank, in whole cents, never a float.

`/simulate` takes a JSON number or a decimal string, the provider APIs a decimal string only.
"""

from __future__ import annotations

import re
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


def _written(value: object) -> object:
    """A decimal string; what is no text is left to be refused."""
    if isinstance(value, str) and re.fullmatch("[0-9]{1,16}([.][0-9]{1,2})?", value, re.ASCII):
        return Decimal(value)
    raise ValueError("a decimal string with at most two decimals, such as 12.30")


WrittenAmount = Annotated[Decimal, BeforeValidator(_written), Field(gt=0)]
"""As the provider APIs take money: a decimal string."""

SignedAmount = Annotated[
    Decimal,
    BeforeValidator(_amount),
    Field(ge=-LARGEST_AMOUNT, le=LARGEST_AMOUNT, decimal_places=2, allow_inf_nan=False),
]
