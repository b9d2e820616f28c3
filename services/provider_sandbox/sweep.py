"""The sweep: what an account holds above a floor is spread over program banks, loaded once per business day."""

from __future__ import annotations

import zlib
from dataclasses import dataclass
from datetime import date
from decimal import Decimal

from services.provider_sandbox import accounts, calendar
from services.provider_sandbox.database import Connection
from services.provider_sandbox.encoding import money
from services.provider_sandbox.feed import publish
from services.provider_sandbox.operations import Refusal
from services.provider_sandbox.program_banks import COUNT, FIRST_ID

_LOAD = """
    INSERT INTO deposit_load (account_id, load_date, balance, locations)
    VALUES ($1, $2, $3, $4) ON CONFLICT DO NOTHING RETURNING true
"""
_LOCATE = """
    INSERT INTO deposit_location (account_id, load_date, location_id, balance)
    SELECT $1, $2, * FROM unnest($3::integer[], $4::numeric[])
"""


@dataclass(frozen=True)
class SweepTerms:
    floor: Decimal
    """What stays in the account."""
    bank_limit: Decimal
    """The most that one program bank holds for one account: what deposit insurance covers."""


def spread(account_id: str, amount: Decimal, bank_limit: Decimal) -> dict[int, Decimal]:
    """Location ids to balances: banks are filled up one after another, from one that is the account's own.

    Refuses an amount for which there are not enough banks.
    """
    full, rest = divmod(amount, bank_limit)
    balances = [bank_limit] * min(int(full), COUNT + 1) + ([rest] if rest else [])
    if len(balances) > COUNT:
        raise Refusal(409, "program_full", f"The sweep programme has {COUNT} banks, too few.")
    first = zlib.crc32(account_id.encode())
    return {FIRST_ID + (first + i) % COUNT: balance for i, balance in enumerate(balances)}


async def load(
    connection: Connection, account_id: str, load_date: date | None, terms: SweepTerms
) -> dict[str, object]:
    """Sweep what the account holds now. Without a date: for today, or for the last business day before."""
    today = calendar.today()
    day = load_date or calendar.latest_business_day(today)
    if day > today or not calendar.is_business_day(day):
        raise Refusal(422, "invalid", "load_date: no business day that has come.")
    account = await accounts.lock(connection, account_id)
    accounts.require_open(account)
    swept = max(account["total"] - terms.floor, Decimal(0))
    locations = spread(account_id, swept, terms.bank_limit)
    loaded = await connection.fetchval(
        _LOAD,
        account_id,
        day,
        swept,
        len(locations),
    )
    if not loaded:
        raise Refusal(409, "already_loaded", "A business day is loaded once.")
    await connection.execute(
        _LOCATE,
        account_id,
        day,
        list(locations.keys()),
        list(locations.values()),
    )
    data = {"as_of_date": day.isoformat(), "locations": len(locations), "balance": money(swept)}
    content = {"account_id": account_id, "customer_id": account["customer_id"], "data": data}
    await publish(connection, "financial", "deposit_locations.updated", content)
    return {"account_id": account_id, **data}
