"""What goes through the queue and out of the door."""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal

from pydantic import BaseModel

QUERIES = "balances"


class BalanceQuery(BaseModel):
    tenant: str
    account_id: str


class Money(BaseModel):
    amount: Decimal
    currency: str


class Balance(BaseModel):
    account_id: str
    account_number: str
    available_balance: Money
    held_balance: Money
    total_balance: Money
    system_timestamp: datetime


class BalanceReply(BaseModel):
    """Nothing when there is no such account."""

    balance: Balance | None


class Envelope(BaseModel):
    message: str
    data: Balance
