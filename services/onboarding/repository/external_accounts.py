"""External bank accounts, scoped by tenant. A draft becomes one when core banking has linked it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any
from uuid import UUID

from sqlalchemy import Row, text
from sqlalchemy.ext.asyncio import AsyncConnection

from libs.contracts.customers import ExternalBankAccount
from services.onboarding.models import ExternalAccountRecord, last_four
from services.onboarding.repository.table import Table
from services.onboarding.repository.vault import Vault

_TABLE = Table("external_accounts", "draft_id")
_COLUMNS = (
    "draft_id, tenant, customer_id, external_account_id, details->>'bank_name' AS bank_name,"
    " details->>'name_on_account' AS name_on_account, details->>'routing_number' AS routing_number,"
    " number_last_four, is_primary, sequence"
)


class ExternalAccounts:
    def __init__(self, vault: Vault) -> None:
        self._vault = vault

    async def add_draft(
        self,
        connection: AsyncConnection,
        *,
        draft_id: UUID,
        tenant: str,
        customer_id: UUID,
        account: ExternalBankAccount,
    ) -> None:
        await connection.execute(
            text(
                "INSERT INTO external_accounts (draft_id, tenant, customer_id, details,"
                " number_last_four, number_digest, is_primary) VALUES (:draft_id, :tenant,"
                " :customer_id, CAST(:details AS jsonb), :last_four, :digest, false)"
            ),
            {
                "draft_id": draft_id,
                "tenant": tenant,
                "customer_id": customer_id,
                "details": self._vault.seal(account, context_of(draft_id)),
                "last_four": last_four(account.account_number),
                "digest": self._vault.number_digest(account),
            },
        )

    async def link(
        self, connection: AsyncConnection, draft: ExternalAccountRecord, external_account_id: str
    ) -> None:
        """Core banking has linked the draft; it is the primary one from now on."""
        await connection.execute(
            text(
                "UPDATE external_accounts SET is_primary = false"
                " WHERE tenant = :tenant AND customer_id = :customer_id AND is_primary"
            ),
            {"tenant": draft.tenant, "customer_id": draft.customer_id},
        )
        await _TABLE.change(
            connection,
            draft.tenant,
            draft.draft_id,
            "external_account_id = :id, is_primary = true",
            id=external_account_id,
        )

    async def has_number(
        self,
        connection: AsyncConnection,
        tenant: str,
        customer_id: UUID,
        account: ExternalBankAccount,
    ) -> bool:
        """Whether the customer has an external account with this routing and account number."""
        found = await connection.execute(
            text(
                "SELECT 1 FROM external_accounts WHERE tenant = :tenant"
                " AND customer_id = :customer_id AND number_digest = :digest"
            ),
            {
                "tenant": tenant,
                "customer_id": customer_id,
                "digest": self._vault.number_digest(account),
            },
        )
        return found.first() is not None

    async def customer_of(
        self, connection: AsyncConnection, tenant: str, external_account_id: str
    ) -> UUID | None:
        """Whose it is, of the tenant's customers."""
        column = "external_account_id"
        return await _TABLE.customer_of(connection, tenant, column, external_account_id)

    async def find_draft(
        self, connection: AsyncConnection, tenant: str, draft_id: UUID
    ) -> ExternalAccountRecord | None:
        """What was added under this draft's id, linked meanwhile or not."""
        rows = await connection.execute(
            text(
                f"SELECT {_COLUMNS} FROM external_accounts"  # noqa: S608 - constants
                " WHERE tenant = :tenant AND draft_id = :draft_id"
            ),
            {"tenant": tenant, "draft_id": draft_id},
        )
        row = rows.first()
        return None if row is None else _record(row)

    async def details(
        self, connection: AsyncConnection, account: ExternalAccountRecord
    ) -> ExternalBankAccount:
        """Opened."""
        rows = await connection.execute(
            text(
                "SELECT details::text FROM external_accounts"
                " WHERE tenant = :tenant AND draft_id = :draft_id"
            ),
            {"tenant": account.tenant, "draft_id": account.draft_id},
        )
        return self._vault.open(
            ExternalBankAccount, rows.scalar_one(), context_of(account.draft_id)
        )

    async def of_customers(
        self, connection: AsyncConnection, tenant: str, customer_ids: Iterable[UUID]
    ) -> list[ExternalAccountRecord]:
        """Drafts included; of each customer the primary one first, then the newest."""
        rows = await connection.execute(
            text(
                f"SELECT {_COLUMNS} FROM external_accounts"  # noqa: S608 - constants
                " WHERE tenant = :tenant AND customer_id = ANY(:ids)"
                " ORDER BY customer_id, is_primary DESC, created_at DESC"
            ),
            {"tenant": tenant, "ids": list(customer_ids)},
        )
        return [_record(row) for row in rows]

    async def next_sequence(
        self, connection: AsyncConnection, account: ExternalAccountRecord
    ) -> int:
        """The number of its next event, under the lock of its row."""
        return await _TABLE.next_sequence(connection, account.tenant, account.draft_id)


def _record(row: Row[Any]) -> ExternalAccountRecord:
    return ExternalAccountRecord(
        draft_id=row.draft_id,
        tenant=row.tenant,
        customer_id=row.customer_id,
        external_account_id=row.external_account_id,
        bank_name=row.bank_name,
        name_on_account=row.name_on_account,
        routing_number=row.routing_number,
        number_last_four=row.number_last_four,
        primary=row.is_primary,
        sequence=row.sequence,
    )


def context_of(draft_id: UUID) -> str:
    """What the sealed fields of the row are bound to."""
    return f"external_accounts/{draft_id}"
