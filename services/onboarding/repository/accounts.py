"""Accounts at the bank and who owns them. An account's owner never changes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from uuid import UUID

from sqlalchemy import Text, any_, bindparam, select
from sqlalchemy.dialects.postgresql import ARRAY, insert

from libs.contracts.ids import parse_id
from libs.contracts.ownership import AccountHolder
from libs.contracts.principal import Principal
from libs.persistence.async_engine import AsyncConnection
from services.onboarding.tables import accounts, customers

_OPEN = "open"
_INSERT = insert(accounts)
_OWN = _INSERT.on_conflict_do_update(
    index_elements=[accounts.c.account_id],
    set_={
        name: _INSERT.excluded[name]
        for name in ("tenant", "customer_id", "account_number", "account_group")
    },
    where=accounts.c.customer_id.is_(None),
)
_SET_STATUS = _INSERT.on_conflict_do_update(
    index_elements=[accounts.c.account_id], set_={"status": _INSERT.excluded.status}
)
_OWNER = select(accounts.c.customer_id).where(
    accounts.c.account_id == bindparam("account_id"), accounts.c.tenant == bindparam("tenant")
)
_PAGE = (
    select(accounts.c.account_id, accounts.c.customer_id)
    .where(accounts.c.tenant == bindparam("tenant"), accounts.c.account_id > bindparam("after"))
    .order_by(accounts.c.account_id)
    .limit(bindparam("limit"))
)
_HOLDERS = (
    select(
        accounts.c.account_id,
        accounts.c.customer_id,
        customers.c.business["business_name"].astext.label("business_name"),
        customers.c.business["dba"].astext.label("dba"),
    )
    .join(customers, customers.c.customer_id == accounts.c.customer_id)
    .where(accounts.c.account_id == any_(bindparam("account_ids", type_=ARRAY(Text))))
)
_OF_CUSTOMER = accounts.c.customer_id == bindparam("customer_id")
_OWNER_OF_CUSTOMER = _OWNER.where(_OF_CUSTOMER)
_PAGE_OF_CUSTOMER = _PAGE.where(_OF_CUSTOMER)


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
        _OWN,
        {
            "account_id": account_id,
            "tenant": tenant,
            "customer_id": customer_id,
            "account_number": account_number,
            "account_group": account_group,
            "status": _OPEN,
        },
    )
    return owned.rowcount == 1


async def set_status(connection: AsyncConnection, account_id: str, status: str) -> None:
    """As the financial provider reports it, who knows no tenant.

    It may know of the account before we do: then the status is kept for the owner to come. Both this and the commit
    that records the owner write the same row, so that the second one sees what the first one wrote.
    """
    await connection.execute(_SET_STATUS, {"account_id": account_id, "status": status})


async def find_owner(
    connection: AsyncConnection, principal: Principal, account_id: str
) -> UUID | None:
    """The customer that owns it, within what the principal may see. One statement on the primary key."""
    statement = _OWNER if principal.customer_id is None else _OWNER_OF_CUSTOMER
    rows = await connection.execute(statement, {"account_id": account_id, **_scope(principal)})
    owner: UUID | None = rows.scalar_one_or_none()
    return owner


async def find_holders(
    connection: AsyncConnection, account_ids: Sequence[str]
) -> list[AccountHolder]:
    """Of any tenant: for what providers report, who know no tenant. Accounts without an owner are left out."""
    rows = await connection.execute(_HOLDERS, {"account_ids": account_ids})
    return [
        AccountHolder(
            account_id=row.account_id,
            customer_id=str(row.customer_id),
            business_name=row.business_name,
            dba=row.dba,
        )
        for row in rows
    ]


async def page_of_owned(
    connection: AsyncConnection, principal: Principal, after: str | None, limit: int
) -> list[tuple[str, UUID]]:
    """(account id, customer id) in the order of account ids, after `after`."""
    statement = _PAGE if principal.customer_id is None else _PAGE_OF_CUSTOMER
    rows = await connection.execute(
        statement, {"after": after or "", "limit": limit, **_scope(principal)}
    )
    return [(row.account_id, row.customer_id) for row in rows]


def _scope(principal: Principal) -> dict[str, Any]:
    """The rows that the principal may see: its tenant's, and of a customer key its customer's."""
    if principal.customer_id is None:
        return {"tenant": principal.tenant}
    return {"tenant": principal.tenant, "customer_id": parse_id(principal.customer_id)}
