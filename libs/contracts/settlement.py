"""Settlement calculations of accounts that have a reserve account."""

from __future__ import annotations

import re
from datetime import date
from typing import Annotated, Literal

from pydantic import AfterValidator, WithJsonSchema

from libs.contracts import fields as f
from libs.contracts.model import Command, Model

SIGNED_DECIMAL = r"^(?!^[-+.]*$)[+-]?0*\d*\.?\d*$"
"""The interface's pattern."""

_SIGNED_DECIMAL = re.compile(SIGNED_DECIMAL.removesuffix("$"), re.ASCII)


def _signed_decimal(value: str) -> str:
    if not _SIGNED_DECIMAL.fullmatch(value):
        raise ValueError("not a signed decimal")
    return value


SignedDecimalText = Annotated[
    str,
    AfterValidator(_signed_decimal),  # Pydantic's own patterns know no look-ahead
    WithJsonSchema({"type": "string", "pattern": SIGNED_DECIMAL}),
]


class ListSettlementCalculations(Command):
    """List the settlement calculations of an account from a day on. `data` is null when the account has no reserve
    account.
    """

    account_id: str
    token_type: Literal["rrc"]
    """Which calculations; `rrc` is the only kind."""
    settlement_date: f.CalendarDate
    """The first day, as `YYYY-MM-DD`."""
    source: f.HeaderText | None = None
    """Handed to the provider as it is."""


class SettlementCalculation(Model):
    """What is to be settled with a reserve account."""

    reserve_account_number: str
    """The number of the reserve account."""
    amount: SignedDecimalText
    """US dollars, as a string of a decimal number that may have a sign: "-1250.75"."""
    ach_file: str | None
    """The type of payment; null when there is none."""
    created_at: f.UtcDateTime
    settlement_date: date
    """The day of settlement."""
