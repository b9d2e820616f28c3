"""External bank accounts, scoped by tenant. A draft becomes one when core banking has linked it."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from sqlalchemy import (
    Row,
    Select,
    Text,
    any_,
    bindparam,
    cast,
    false,
    func,
    insert,
    select,
    true,
    update,
)
from sqlalchemy.dialects.postgresql import ARRAY, BYTEA

from libs.contracts.accounts import LinkedExternalAccount
from libs.contracts.customers import Address, ExternalBankAccount
from libs.contracts.exact_json import decode
from libs.contracts.masking import masked
from libs.contracts.ownership import ExternalAccountOwner
from libs.persistence.async_engine import AsyncConnection
from services.onboarding.models import ExternalAccountRecord
from services.onboarding.repository.stored import read_stored
from services.onboarding.repository.tenant_rows import (
    TenantRows,
    customer_by,
    find_customer,
    json_of,
)
from services.onboarding.repository.vault import Vault
from services.onboarding.tables import external_accounts

_T = external_accounts
_ROWS = TenantRows(_T, _T.c.draft_id)
_ADD = insert(_T).values(details=json_of("details_json"), is_primary=false())
_NO_PRIMARY = (
    update(_T)
    .where(
        _T.c.tenant == bindparam("of_tenant"),
        _T.c.customer_id == bindparam("of_customer"),
        _T.c.is_primary,
    )
    .values(is_primary=false())
)
_LINK = _ROWS.update.values(
    external_account_id=bindparam("linked_as"),
    is_primary=true(),
    linked_at=func.clock_timestamp(),
)
_BY_NUMBER = select(_T.c.draft_id).where(
    _T.c.tenant == bindparam("tenant"),
    _T.c.customer_id == bindparam("customer_id"),
    _T.c.number_digest == any_(bindparam("number_digests", type_=ARRAY(BYTEA))),
)
_CUSTOMER = customer_by(_T, _T.c.external_account_id)
_OF_TENANT: Select[Any] = select(
    _T.c.draft_id,
    _T.c.tenant,
    _T.c.customer_id,
    _T.c.external_account_id,
    _T.c.details["bank_name"].astext.label("bank_name"),
    _T.c.details["name_on_account"].astext.label("name_on_account"),
    _T.c.details["routing_number"].astext.label("routing_number"),
    _T.c.number_last_four,
    _T.c.is_primary,
    _T.c.sequence,
).where(_T.c.tenant == bindparam("tenant"))
_DRAFT = _OF_TENANT.where(_T.c.draft_id == bindparam("draft_id"))
_LINKED = (
    select(
        _T.c.external_account_id,
        _T.c.details["bank_name"].astext.label("bank_name"),
        _T.c.details["name_on_account"].astext.label("name_on_account"),
        _T.c.details["routing_number"].astext.label("routing_number"),
        _T.c.number_last_four.label("account_number"),
        _T.c.is_primary.label("primary"),
    )
    .where(
        _T.c.customer_id == bindparam("customer_id"),
        _T.c.external_account_id.is_not(None),
    )
    .order_by(_T.c.is_primary.desc(), _T.c.created_at.desc())
)
_OWNER = select(
    _T.c.customer_id,
    _T.c.details["name_on_account"].astext.label("name_on_account"),
    cast(_T.c.details["address_on_account"], Text).label("address_on_account"),
    # Of one that an earlier release has linked it is not known when: it was added then, or before.
    func.coalesce(_T.c.linked_at, _T.c.created_at).label("linked_at"),
).where(
    _T.c.tenant == bindparam("tenant"),
    _T.c.external_account_id == bindparam("external_account_id"),
)
_DETAILS = select(cast(_T.c.details, Text)).where(
    _T.c.tenant == bindparam("tenant"), _T.c.draft_id == bindparam("draft_id")
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
            _ADD,
            {
                "draft_id": draft_id,
                "tenant": tenant,
                "customer_id": customer_id,
                "details_json": self._vault.seal(account, context_of(draft_id)),
                "number_last_four": masked(account.account_number),
                "number_digest": self._vault.number_digests(account)[0],
            },
        )

    async def link(
        self, connection: AsyncConnection, draft: ExternalAccountRecord, external_account_id: str
    ) -> None:
        """Core banking has linked the draft; it is the primary one from now on."""
        await connection.execute(
            _NO_PRIMARY, {"of_tenant": draft.tenant, "of_customer": draft.customer_id}
        )
        await _ROWS.change(
            connection, _LINK, draft.tenant, draft.draft_id, linked_as=external_account_id
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
            _BY_NUMBER,
            {
                "tenant": tenant,
                "customer_id": customer_id,
                "number_digests": list(self._vault.number_digests(account)),
            },
        )
        return found.first() is not None

    async def customer_of(
        self, connection: AsyncConnection, tenant: str, external_account_id: str
    ) -> UUID | None:
        """Whose it is, of the tenant's customers."""
        return await find_customer(connection, _CUSTOMER, tenant, external_account_id)

    async def owner_of(
        self, connection: AsyncConnection, tenant: str, external_account_id: str
    ) -> ExternalAccountOwner | None:
        """As `customer_of`, with its holder."""
        rows = await connection.execute(
            _OWNER, {"tenant": tenant, "external_account_id": external_account_id}
        )
        row = rows.one_or_none()
        if row is None:
            return None
        return ExternalAccountOwner(
            external_account_id=external_account_id,
            customer_id=str(row.customer_id),
            name_on_account=row.name_on_account,
            address_on_account=read_stored(Address, decode(row.address_on_account)),
            linked_at=row.linked_at,
        )

    async def find_draft(
        self, connection: AsyncConnection, tenant: str, draft_id: UUID
    ) -> ExternalAccountRecord | None:
        """What was added under this draft's id, linked meanwhile or not."""
        rows = await connection.execute(_DRAFT, {"tenant": tenant, "draft_id": draft_id})
        row = rows.first()
        return None if row is None else _record(row)

    async def details(
        self, connection: AsyncConnection, account: ExternalAccountRecord
    ) -> ExternalBankAccount:
        """Opened."""
        rows = await connection.execute(
            _DETAILS, {"tenant": account.tenant, "draft_id": account.draft_id}
        )
        return self._vault.open(
            ExternalBankAccount, rows.scalar_one(), context_of(account.draft_id)
        )

    async def linked(
        self, connection: AsyncConnection, customer_id: UUID
    ) -> list[LinkedExternalAccount]:
        """Of a customer of any tenant, the primary one first, then the newest: for services that know its id only."""
        rows = await connection.execute(_LINKED, {"customer_id": customer_id})
        return [LinkedExternalAccount(**row._mapping) for row in rows]

    async def next_sequence(
        self, connection: AsyncConnection, account: ExternalAccountRecord
    ) -> int:
        """The number of its next event, under the lock of its row."""
        return await _ROWS.next_sequence(connection, account.tenant, account.draft_id)


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
