"""Reading accounts and balances."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

from services.provider_sandbox import accounts
from services.provider_sandbox.database import Connection
from services.provider_sandbox.encoding import instant
from services.provider_sandbox.operations import NoQuery, Query
from services.provider_sandbox.pages import Ids

CURRENCY = "USD"

_FIND = "SELECT * FROM account_of_customer WHERE account_id = ANY($1::text[])"
_BALANCES = "SELECT account_id, account_number, total, held FROM account WHERE account_id = ANY($1)"


class AccountIds(Query):
    account_id: Ids


async def list_accounts(connection: Connection, _: str, query: AccountIds) -> object:
    """Those that exist, in the order in which they were asked for, each once."""
    rows = await connection.fetch(_FIND, query.account_id)
    found = {row["account_id"]: row for row in rows}
    asked = dict.fromkeys(query.account_id)
    return {"accounts": [accounts.shape(found[key]) for key in asked if key in found]}


async def get_account(connection: Connection, account_id: str, _: NoQuery) -> object:
    return accounts.shape(await accounts.find(connection, account_id))


async def get_balances(connection: Connection, account_ids: Sequence[str]) -> Mapping[str, object]:
    rows = await connection.fetch(
        _BALANCES,
        account_ids,
    )
    as_of = instant(datetime.now(UTC))
    return {
        row["account_id"]: {
            "account_id": row["account_id"],
            "account_number": row["account_number"],
            **accounts.balances(row),
            "currency": CURRENCY,
            "as_of": as_of,
        }
        for row in rows
    }
