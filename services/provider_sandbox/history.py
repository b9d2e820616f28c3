"""A past for an account, invented: as many transactions as are asked for, spread at random over the days before now.

Their balance by itself never falls below zero, since they begin with a credit and no debit
is larger than what those before it have left. They are not reported in the feed.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from itertools import islice

from services.provider_sandbox import ledger
from services.provider_sandbox.calendar import FIRST_DAY, midnight
from services.provider_sandbox.database import Connection
from services.provider_sandbox.encoding import instant

MOST_TRANSACTIONS = 250_000
MOST_DAYS = 3_660
AT_ONCE = 5_000
"""Entries in one statement: each stays far below the time that one may take."""
MARGIN = timedelta(milliseconds=10)
"""How long before now the last transaction is."""

CREDITS: dict[ledger.EntryType, float] = {
    "deposit": 70,
    "ach": 18,
    "wire": 9,
    "return": 2,
    "interest": 1,
}
DEBITS: dict[ledger.EntryType, float] = {"withdrawal": 52, "ach": 38, "fee": 10}
"""No wires: the bank debits one only for a wire that it holds, and reconciliation lists any other."""
COUNTERPARTIES = {
    "deposit": (
        "Brightlane Payments", "Cornerstone Cards", "Harbor Coffee Roasters", "Lakeside Dental Group",
        "Maple & Main Outfitters", "Northgate Traders", "Redwood Property Partners", "Storefront Payouts",
        "Summit Analytics LLC", "Tidewater Logistics",
    ),
    "withdrawal": (
        "Alder Office Supply", "Parcel & Crate", "City Water & Power", "Delta Valley Freight", "Swift Courier Co.",
        "Cloudworks Inc.", "Keystone Insurance", "Office of the Comptroller", "Riverside Leasing", "Bayline Wireless",
    ),
    "ach": (
        "Ledgerline Payroll", "Meridian Cards", "Cedar Health Benefits", "Fairweather Payroll",
        "Internal Revenue Service", "Tallybook Payments", "State Tax Commission", "Prairie Food Supply",
    ),
    "wire": ("Baltic Steel GmbH", "Kobe Instruments K.K.", "Orchard Equity Partners", "Pacific Title & Escrow"),
    "return": ("Returned payment",),
    "interest": ("Interest paid",),
    "fee": ("Account service fee", "Outgoing wire fee"),
}  # fmt: skip
LARGEST_CENTS: dict[ledger.EntryType, int] = {"interest": 5_000, "fee": 3_500}

_POST = """
    WITH past AS (
        SELECT * FROM unnest($2::text[], $3::text[], $4::text[], $5::timestamptz[], $6::text[], $7::numeric[])
            AS past (transaction_id, type, counterparty_name, settled_at, other_side, amount)
    ), entry AS (
        INSERT INTO journal_entry (transaction_id, type, counterparty_name, settled_at)
        SELECT transaction_id, type, counterparty_name, settled_at FROM past
    )
    INSERT INTO posting (transaction_id, settled_at, ledger_account_id, amount)
    SELECT transaction_id, settled_at, side.account_id, side.amount FROM past,
        LATERAL (VALUES ($1, amount), (other_side, -amount)) AS side (account_id, amount)
"""


@dataclass(frozen=True)
class Past:
    settled_at: datetime
    type: ledger.EntryType
    counterparty_name: str
    amount: Decimal


async def fill(connection: Connection, account_id: str, count: int, days: int) -> dict[str, object]:
    """Post the transactions on a locked account, in one database transaction: all of them or none."""
    until = datetime.now(UTC) - MARGIN
    since = max(until - timedelta(days=days), midnight(FIRST_DAY))
    moments = _moments(since, until, count)
    past = invent(moments, random.Random())  # noqa: S311 - plausible, not secret
    # Plans that this session made while the tables were small are not for so many rows.
    await connection.execute("DISCARD PLANS")
    while chunk := list(islice(past, AT_ONCE)):
        await _post(connection, account_id, chunk)
        await connection.execute("SET CONSTRAINTS ALL IMMEDIATE")
        await connection.execute("SET CONSTRAINTS ALL DEFERRED")
    return {
        "transactions": count,
        "first_settled_at": instant(moments[0]),
        "last_settled_at": instant(moments[-1]),
    }


def invent(moments: list[datetime], draw: random.Random) -> Iterator[Past]:
    """One transaction for each moment, given in order of time."""
    balance = 0
    for moment in moments:
        is_credit = balance < 100_00 or draw.random() < 0.5
        kinds = CREDITS if is_credit else DEBITS
        [kind] = draw.choices(list(kinds), list(kinds.values()))
        cents = min(1 + int(draw.lognormvariate(10.5, 1.3)), LARGEST_CENTS.get(kind, 250_000_00))
        if not is_credit:
            cents = min(cents, balance)
        signed = cents if is_credit else -cents
        balance += signed
        name = draw.choice(COUNTERPARTIES[kind])
        yield Past(moment, kind, name, Decimal(signed).scaleb(-2))


def _moments(since: datetime, until: datetime, count: int) -> list[datetime]:
    span = (until - since) // timedelta(microseconds=1)
    offsets = sorted(random.choices(range(span), k=count))  # noqa: S311 - plausible, not secret
    return [since + timedelta(microseconds=offset) for offset in offsets]


async def _post(connection: Connection, account_id: str, chunk: list[Past]) -> None:
    await connection.execute(
        _POST,
        account_id,
        [ledger.new_transaction_id() for _ in chunk],
        [past.type for past in chunk],
        [past.counterparty_name for past in chunk],
        [past.settled_at for past in chunk],
        [ledger.other_side(past.type) for past in chunk],
        [past.amount for past in chunk],
    )
