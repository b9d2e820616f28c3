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
    """Calculations from `settlement_date` on. `source` is handed to the provider as it is."""

    account_id: str
    token_type: Literal["rrc"]
    settlement_date: f.CalendarDate
    source: f.HeaderText | None = None


class SettlementCalculation(Model):
    reserve_account_number: str
    amount: SignedDecimalText
    ach_file: str | None
    created_at: f.UtcDateTime
    settlement_date: date
