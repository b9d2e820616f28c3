"""Settlement calculations with an account's reserve, per business day, and the reserve accounts themselves."""

from __future__ import annotations

from datetime import date
from decimal import Decimal

from services.provider_sandbox import accounts, calendar
from services.provider_sandbox.database import Connection, Row
from services.provider_sandbox.encoding import instant, money
from services.provider_sandbox.operations import Refusal

_SET_RESERVE = "UPDATE account SET reserve_account_id = $2 WHERE account_id = $1"
_CALCULATE = """
    INSERT INTO settlement_calculation (account_id, settlement_date, amount, ach_file, source)
    VALUES ($1, $2, $3, $4, $5) RETURNING *
"""


def shape(calculation: Row) -> dict[str, object]:
    return {
        "amount": money(calculation["amount"]),
        "ach_file": calculation["ach_file"],
        "created_at": instant(calculation["created_at"]),
        "settlement_date": calculation["settlement_date"].isoformat(),
    }


async def open_reserve(connection: Connection, account_id: str) -> Row:
    """The account's reserve account, opened when it has none yet."""
    account = await accounts.lock(connection, account_id)
    if account["reserve_account_id"] is not None:
        return await accounts.find(connection, account["reserve_account_id"])
    accounts.require_open(account)
    if account["account_group"] != "deposit":
        raise Refusal(409, "not_a_deposit_account", "A reserve account has no reserve itself.")
    title = f"{account['account_title']} reserve"
    reserve = await accounts.open_account(connection, account["core_id"], "reserve", title)
    await connection.execute(
        _SET_RESERVE,
        account_id,
        reserve["account_id"],
    )
    return reserve


async def calculate(
    connection: Connection,
    account_id: str,
    settlement_date: date,
    amount: Decimal,
    ach_file: str | None,
    source: str | None,
) -> Row:
    if not calendar.is_business_day(settlement_date):
        raise Refusal(422, "invalid", "settlement_date: no business day.")
    account = await accounts.lock(connection, account_id)
    if account["reserve_account_id"] is None:
        raise Refusal(409, "no_reserve_account", "The account has no reserve account.")
    calculation = await connection.fetchrow(
        _CALCULATE,
        account_id,
        settlement_date,
        amount,
        ach_file,
        source,
    )
    assert calculation is not None
    return calculation
