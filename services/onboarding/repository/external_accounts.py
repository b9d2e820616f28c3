"""External bank accounts, scoped by tenant. A draft becomes one when core banking has linked it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any
from uuid import UUID

from sqlalchemy import Row, text
from sqlalchemy.ext.asyncio import AsyncConnection

from libs.contracts.customers import ExternalBankAccount
from services.onboarding.models import ExternalAccountRecord
from services.onboarding.repository.vault import Vault

_COLUMNS = "draft_id, tenant, customer_id, external_account_id, details::text, is_primary, sequence"


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
                "INSERT INTO external_accounts"
                " (draft_id, tenant, customer_id, details, number_digest, is_primary) VALUES"
                " (:draft_id, :tenant, :customer_id, CAST(:details AS jsonb), :digest, false)"
            ),
            {
                "draft_id": draft_id,
                "tenant": tenant,
                "customer_id": customer_id,
                "details": self._vault.seal(account, _context(draft_id)),
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
        await connection.execute(
            text(
                "UPDATE external_accounts SET external_account_id = :id, is_primary = true"
                " WHERE tenant = :tenant AND draft_id = :draft_id"
            ),
            {"id": external_account_id, "tenant": draft.tenant, "draft_id": draft.draft_id},
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
        rows = await connection.execute(
            text(
                "SELECT customer_id FROM external_accounts"
                " WHERE tenant = :tenant AND external_account_id = :id"
            ),
            {"tenant": tenant, "id": external_account_id},
        )
        found: UUID | None = rows.scalar_one_or_none()
        return found

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
        return None if row is None else self._record(row)

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
        return [self._record(row) for row in rows]

    async def next_sequence(
        self, connection: AsyncConnection, account: ExternalAccountRecord
    ) -> int:
        """The number of its next event, under the lock of its row."""
        row = await connection.execute(
            text(
                "UPDATE external_accounts SET sequence = sequence + 1"
                " WHERE tenant = :tenant AND draft_id = :draft_id RETURNING sequence"
            ),
            {"tenant": account.tenant, "draft_id": account.draft_id},
        )
        return int(row.scalar_one())

    def _record(self, row: Row[Any]) -> ExternalAccountRecord:
        return ExternalAccountRecord(
            draft_id=row.draft_id,
            tenant=row.tenant,
            customer_id=row.customer_id,
            external_account_id=row.external_account_id,
            details=self._vault.open(ExternalBankAccount, row.details, _context(row.draft_id)),
            primary=row.is_primary,
            sequence=row.sequence,
        )


def _context(draft_id: UUID) -> str:
    return f"external_accounts/{draft_id}"
