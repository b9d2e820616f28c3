"""Digests by the first lookup key for what is found by an older one: how a lookup key gets out of use.

While it is replaced, the EIN of a customer is held by the digests of both keys, so that processes with either key find
it taken. Customers whose row a service has locked are passed over rather than waited for, and looked at again.
"""

from __future__ import annotations

import asyncio
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from uuid import UUID

from sqlalchemy import ARRAY, Text, any_, bindparam, cast, delete, select, update
from sqlalchemy.dialects.postgresql import BYTEA, insert
from sqlalchemy.ext.asyncio import AsyncConnection

from libs.contracts.customers import Business, ExternalBankAccount
from libs.persistence.engine import Database
from libs.persistence.resealing import BATCH, PASSES, PAUSE_SECONDS
from libs.persistence.sealing import CannotOpen, LookupKeys
from libs.persistence.tables import UUID_TYPE
from services.onboarding.repository import customers as customer_rows
from services.onboarding.repository import external_accounts as external_account_rows
from services.onboarding.repository.vault import Vault
from services.onboarding.tables import customers, ein_holds, external_accounts

FIRST = UUID(int=0)

_IDS = bindparam("ids", type_=ARRAY(UUID_TYPE))
_AFTER = bindparam("after", type_=UUID_TYPE)
_HOLDERS = (
    select(ein_holds.c.customer_id)
    .where(ein_holds.c.customer_id > _AFTER)
    .distinct()
    .order_by(ein_holds.c.customer_id)
    .limit(BATCH)
)
_HELD = select(ein_holds.c.customer_id, ein_holds.c.ein_digest).where(
    ein_holds.c.customer_id == any_(_IDS)
)
_CUSTOMERS = (
    select(
        customers.c.tenant,
        customers.c.customer_id,
        cast(customers.c.business, Text).label("business"),
    )
    .where(customers.c.customer_id == any_(_IDS))
    .with_for_update(key_share=True, skip_locked=True)
)
_HOLD = insert(ein_holds).on_conflict_do_nothing()
_LET_GO = delete(ein_holds).where(
    ein_holds.c.tenant == bindparam("of_tenant"),
    ein_holds.c.ein_digest == any_(bindparam("digests", type_=ARRAY(BYTEA))),
    ein_holds.c.customer_id == bindparam("of_customer"),
)
_ACCOUNTS = (
    select(external_accounts.c.draft_id, external_accounts.c.number_digest)
    .where(external_accounts.c.draft_id > _AFTER)
    .order_by(external_accounts.c.draft_id)
    .limit(BATCH)
)
_DETAILS = (
    select(external_accounts.c.draft_id, cast(external_accounts.c.details, Text).label("details"))
    .where(external_accounts.c.draft_id == any_(_IDS))
    .with_for_update(key_share=True, skip_locked=True)
)
_SET_DIGEST = (
    update(external_accounts)
    .where(external_accounts.c.draft_id == bindparam("of_draft"))
    .values(number_digest=bindparam("digest"))
)


async def redigest(database: Database, vault: Vault, keys: LookupKeys) -> Counter[str]:
    """Returns how many values are left to an older key, by its id."""
    left = Counter[str]()
    for number in range(PASSES):
        await asyncio.sleep(number and PAUSE_SECONDS)
        left = await _Walk(database, vault, keys).run()
        if not left:
            break
    return left


class _Walk:
    def __init__(self, database: Database, vault: Vault, keys: LookupKeys) -> None:
        self._database = database
        self._vault = vault
        self._keys = keys
        self._left = Counter[str]()

    async def run(self) -> Counter[str]:
        for page, renew in ((_HOLDERS, self._renew_holds), (_ACCOUNTS, self._renew_accounts)):
            after, is_last = FIRST, False
            while not is_last:
                async with self._database.transaction() as connection:
                    rows = (await connection.execute(page, {"after": after})).all()
                    await renew(connection, rows)
                is_last = len(rows) < BATCH
                after = rows[-1][0] if rows else after
        return self._left

    async def _renew_holds(self, connection: AsyncConnection, page: Sequence[tuple[UUID]]) -> None:
        held = await self._held(connection, [row[0] for row in page])
        outdated = {
            customer_id: digests
            for customer_id, digests in held.items()
            if not self._has_first(digests) or self._off_the_ring(digests)
        }
        rows = (await connection.execute(_CUSTOMERS, {"ids": list(outdated)})).all()
        # What is read under the locks counts: an EIN may have been changed, or let go of, meanwhile.
        locked = await self._held(connection, [row.customer_id for row in rows])
        for row in rows:
            if not (digests := locked.get(row.customer_id)):
                continue
            context = customer_rows.context_of(row.customer_id)
            try:
                business = self._vault.open(Business, row.business, context)
            except CannotOpen:
                continue
            for digest in sorted(self._vault.ein_digests(business.ein)):
                await connection.execute(
                    _HOLD,
                    {"tenant": row.tenant, "ein_digest": digest, "customer_id": row.customer_id},
                )
            let_go = {
                "of_tenant": row.tenant,
                "of_customer": row.customer_id,
                "digests": self._off_the_ring(digests),
            }
            await connection.execute(_LET_GO, let_go)
            outdated.pop(row.customer_id, None)
        for digests in outdated.values():
            self._count(digests)

    async def _held(
        self, connection: AsyncConnection, ids: Sequence[UUID]
    ) -> Mapping[UUID, list[bytes]]:
        held = defaultdict[UUID, list[bytes]](list)
        for row in await connection.execute(_HELD, {"ids": ids}):
            held[row.customer_id].append(row.ein_digest)
        return held

    async def _renew_accounts(
        self, connection: AsyncConnection, page: Sequence[tuple[UUID, bytes]]
    ) -> None:
        outdated = {draft_id: digest for draft_id, digest in page if not self._has_first([digest])}
        rows = (await connection.execute(_DETAILS, {"ids": list(outdated)})).all()
        for row in rows:
            context = external_account_rows.context_of(row.draft_id)
            try:
                account = self._vault.open(ExternalBankAccount, row.details, context)
            except CannotOpen:
                continue
            digest = self._vault.number_digests(account)[0]
            await connection.execute(_SET_DIGEST, {"of_draft": row.draft_id, "digest": digest})
            outdated.pop(row.draft_id)
        for digest in outdated.values():
            self._count([digest])

    def _has_first(self, digests: Sequence[bytes]) -> bool:
        return any(LookupKeys.key_id_of(digest) == self._keys.key_ids[0] for digest in digests)

    def _off_the_ring(self, digests: Sequence[bytes]) -> list[bytes]:
        return [d for d in digests if LookupKeys.key_id_of(d) not in self._keys.key_ids]

    def _count(self, digests: Sequence[bytes]) -> None:
        """What was passed over: it may need each key whose digest it has."""
        self._left.update({*map(LookupKeys.key_id_of, digests)} - {self._keys.key_ids[0]})
