"""Linked external accounts of all tenants: for reconciliation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from uuid import UUID

from sqlalchemy import ARRAY, Row, Text, any_, bindparam, cast, select

from libs.contracts.customers import ExternalBankAccount
from libs.contracts.reconciliation import RecordedExternalAccount
from libs.persistence.async_engine import AsyncConnection
from libs.persistence.tables import UUID_TYPE
from services.onboarding.repository.external_accounts import context_of
from services.onboarding.repository.vault import Vault
from services.onboarding.tables import external_accounts

_T = external_accounts.c
_LINKED = select(
    _T.draft_id,
    _T.customer_id,
    _T.external_account_id,
    _T.is_primary,
    cast(_T.details, Text).label("details"),
).where(_T.external_account_id.is_not(None))
_PAGE = (
    _LINKED.where(_T.external_account_id > bindparam("after"))
    .order_by(_T.external_account_id)
    .limit(bindparam("limit"))
)
_BY_IDS = _LINKED.where(_T.external_account_id == any_(bindparam("ids", type_=ARRAY(Text))))
_OF_CUSTOMERS = _LINKED.where(_T.customer_id == any_(bindparam("ids", type_=ARRAY(UUID_TYPE))))


class ExternalAccountReader:
    """Sensitive fields are opened."""

    def __init__(self, vault: Vault) -> None:
        self._vault = vault

    async def page(
        self, connection: AsyncConnection, after: str | None, limit: int
    ) -> list[RecordedExternalAccount]:
        """In the order of their ids."""
        rows = await connection.execute(_PAGE, {"after": after or "", "limit": limit})
        return [self._account(row) for row in rows]

    async def by_ids(
        self, connection: AsyncConnection, ids: Sequence[str]
    ) -> list[RecordedExternalAccount]:
        rows = await connection.execute(_BY_IDS, {"ids": list(ids)})
        return [self._account(row) for row in rows]

    async def of_customers(
        self, connection: AsyncConnection, customer_ids: Sequence[UUID]
    ) -> list[RecordedExternalAccount]:
        """All of them, however many: asked by a reconciliation that does not page them."""
        rows = await connection.execute(_OF_CUSTOMERS, {"ids": list(customer_ids)})
        return [self._account(row) for row in rows]

    def _account(self, row: Row[Any]) -> RecordedExternalAccount:
        account = self._vault.open(ExternalBankAccount, row.details, context_of(row.draft_id))
        return RecordedExternalAccount(
            external_account_id=row.external_account_id,
            customer_id=str(row.customer_id),
            primary=row.is_primary,
            routing_number=account.routing_number,
            account_number=account.account_number,
        )
