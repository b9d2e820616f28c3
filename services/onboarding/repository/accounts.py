"""Accounts at the bank and who owns them. An account's owner never changes."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any
from uuid import UUID

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

from libs.contracts.ids import parse_id
from libs.contracts.principal import Principal
from services.onboarding.models import DEPOSIT, AccountRecord, CustomerRecord
from services.onboarding.ports import OpenedAccount


async def add(
    connection: AsyncConnection, customer: CustomerRecord, account: OpenedAccount
) -> None:
    """The customer's from now on; open, unless the provider has reported something else meanwhile."""
    added = await own(
        connection,
        customer.tenant,
        customer.customer_id,
        account.account_id,
        account.account_number,
        DEPOSIT,
    )
    assert added, "core banking opened an account that has an owner already"


async def own(
    connection: AsyncConnection,
    tenant: str,
    customer_id: UUID,
    account_id: str,
    account_number: str,
    account_group: str,
) -> bool:
    """Record whose an account is, once: False when it has an owner."""
    owned = await connection.execute(
        text(
            "INSERT INTO accounts (account_id, tenant, customer_id, account_number, account_group, status)"
            " VALUES (:account_id, :tenant, :customer_id, :account_number, :account_group, 'open')"
            " ON CONFLICT (account_id) DO UPDATE SET tenant = excluded.tenant,"
            " customer_id = excluded.customer_id, account_number = excluded.account_number,"
            " account_group = excluded.account_group"
            " WHERE accounts.customer_id IS NULL"
        ),
        {
            "account_id": account_id,
            "tenant": tenant,
            "customer_id": customer_id,
            "account_number": account_number,
            "account_group": account_group,
        },
    )
    return owned.rowcount == 1


async def of_customers(
    connection: AsyncConnection, tenant: str, customer_ids: Iterable[UUID]
) -> list[AccountRecord]:
    rows = await connection.execute(
        text(
            "SELECT account_id, customer_id, account_number, account_group, status FROM accounts"
            " WHERE tenant = :tenant AND customer_id = ANY(:ids) ORDER BY customer_id, account_id"
        ),
        {"tenant": tenant, "ids": list(customer_ids)},
    )
    return [AccountRecord(**row._mapping) for row in rows]


async def set_status(connection: AsyncConnection, account_id: str, status: str) -> None:
    """As the financial provider reports it, who knows no tenant.

    It may know of the account before we do: then the status is kept for the owner to come. Both this and `add` write
    the same row, so that one waits for the other and whichever comes second sees what the first one wrote.
    """
    await connection.execute(
        text(
            "INSERT INTO accounts (account_id, status) VALUES (:account_id, :status)"
            " ON CONFLICT (account_id) DO UPDATE SET status = excluded.status"
        ),
        {"account_id": account_id, "status": status},
    )


async def find_owner(
    connection: AsyncConnection, principal: Principal, account_id: str
) -> UUID | None:
    """The customer that owns it, within what the principal may see. One statement on the primary key."""
    scope, values = _scope(principal)
    rows = await connection.execute(
        text(f"SELECT customer_id FROM accounts WHERE account_id = :account_id AND {scope}"),  # noqa: S608
        {"account_id": account_id, **values},
    )
    owner: UUID | None = rows.scalar_one_or_none()
    return owner


async def page_of_owned(
    connection: AsyncConnection, principal: Principal, after: str | None, limit: int
) -> list[tuple[str, UUID]]:
    """(account id, customer id) in the order of account ids, after `after`."""
    scope, values = _scope(principal)
    rows = await connection.execute(
        text(
            f"SELECT account_id, customer_id FROM accounts WHERE {scope} AND account_id > :after"  # noqa: S608
            " ORDER BY account_id LIMIT :limit"
        ),
        {"after": after or "", "limit": limit, **values},
    )
    return [(row.account_id, row.customer_id) for row in rows]


def _scope(principal: Principal) -> tuple[str, dict[str, Any]]:
    """The rows that the principal may see: its tenant's, and of a customer key its customer's."""
    values: dict[str, Any] = {"tenant": principal.tenant}
    if principal.customer_id is None:
        return "tenant = :tenant", values
    values["customer_id"] = parse_id(principal.customer_id)
    return "tenant = :tenant AND customer_id = :customer_id", values
