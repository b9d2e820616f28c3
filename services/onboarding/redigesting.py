"""Digests by the first lookup key for what is found by an older one: how a lookup key gets out of use.

While it is replaced, the EIN of a customer is held by the digests of both keys, so that processes with either key find
it taken. A customer whose EIN is being changed holds two: that of its row, and that of the unfinished command. An EIN
that neither of them names was left by an abandoned change: it is let go of when its key is replaced. Customers whose
row a service has locked are passed over rather than waited for, and looked at again.
"""

from __future__ import annotations

import asyncio
import itertools
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any
from uuid import UUID

import msgspec
from pydantic import ValidationError
from sqlalchemy import ARRAY, Row, Text, any_, bindparam, cast, delete, select, update
from sqlalchemy.dialects.postgresql import BYTEA, insert

from libs.contracts.customers import Business, ExternalBankAccount
from libs.contracts.exact_json import NotExactJson
from libs.contracts.onboarding_operations import UPDATE_BUSINESS
from libs.contracts.sensitive import Sealer
from libs.handling.payloads import open_body
from libs.handling.resealing import Renewed
from libs.persistence.async_engine import AsyncConnection
from libs.persistence.engine import Database
from libs.persistence.resealing import BATCH, NotAPlace
from libs.persistence.sealing import CannotOpen, LookupKeys
from libs.persistence.tables import UUID_TYPE
from services.onboarding.ordering import ordering_key
from services.onboarding.repository import customers as customer_rows
from services.onboarding.repository import external_accounts as external_account_rows
from services.onboarding.repository.vault import Vault
from services.onboarding.tables import customers, ein_holds, external_accounts, inbox

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
_CHANGES = select(inbox.c.ordering_key, inbox.c.command_id, inbox.c.body).where(
    inbox.c.ordering_key == any_(bindparam("ordering_keys", type_=ARRAY(Text))),
    inbox.c.operation == UPDATE_BUSINESS.name,
    inbox.c.finished_at.is_(None),
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


class Redigesting:
    """Walks over the customers that hold EINs, and then over the external accounts.

    Args:
        commands: opens those that the gateway sealed.
    """

    def __init__(
        self, database: Database, vault: Vault, keys: LookupKeys, commands: Sealer
    ) -> None:
        self._database = database
        self._vault = vault
        self._keys = keys
        self._commands = commands

    async def renew(self, after: str | None, until: float) -> Renewed:
        """See `libs.handling.resealing.Digests`."""
        part, last = _place(after)
        step = _Step(self._vault, self._keys, self._commands)
        pages = ((_HOLDERS, step.renew_holds), (_ACCOUNTS, step.renew_accounts))
        while part < len(pages):
            page, renew = pages[part]
            async with self._database.transaction() as connection:
                rows = (await connection.execute(page, {"after": last})).all()
                await renew(connection, rows)
            is_last = len(rows) < BATCH
            part, last = (part + 1, FIRST) if is_last else (part, rows[-1][0])
            if asyncio.get_running_loop().time() >= until:
                break
        return Renewed(step.left, f"{part}:{last}" if part < len(pages) else None)


def _place(after: str | None) -> tuple[int, UUID]:
    if after is None:
        return 0, FIRST
    part, _, last = after.partition(":")
    if part not in ("0", "1"):
        raise NotAPlace
    try:
        return int(part), UUID(last)
    except ValueError:
        raise NotAPlace from None


class _Step:
    """`left`: how many values are left to an older key, by its id."""

    def __init__(self, vault: Vault, keys: LookupKeys, commands: Sealer) -> None:
        self._vault = vault
        self._keys = keys
        self._commands = commands
        self.left = Counter[str]()

    async def renew_holds(self, connection: AsyncConnection, page: Sequence[tuple[UUID]]) -> None:
        held = await self._held(connection, [row[0] for row in page])
        outdated = {
            customer_id: digests
            for customer_id, digests in held.items()
            if not self._is_held_by_each_key(digests)
        }
        rows = (await connection.execute(_CUSTOMERS, {"ids": list(outdated)})).all()
        # What is read under the locks counts: an EIN may have been changed, or let go of, meanwhile.
        locked = await self._held(connection, [row.customer_id for row in rows])
        changes = await self._unfinished_changes(connection, rows)
        for row in rows:
            digests = locked.get(row.customer_id, [])
            try:
                eins = [*self._eins_of(row, changes)]
            except (CannotOpen, ValidationError, NotExactJson, msgspec.MsgspecError):
                continue  # also a command that only another release can read, which is parked
            if await self._renew_hold(connection, row, digests, eins):
                del outdated[row.customer_id]
        for digests in outdated.values():
            self._count(digests)

    async def _unfinished_changes(
        self, connection: AsyncConnection, rows: Sequence[Row[Any]]
    ) -> Mapping[str, Sequence[Any]]:
        """By ordering key. A command is recorded before it takes hold of an EIN, under the customer's lock."""
        keys = [ordering_key(row.tenant, row.customer_id) for row in rows]
        changes = defaultdict[str, list[Any]](list)
        for change in await connection.execute(_CHANGES, {"ordering_keys": keys}):
            changes[change.ordering_key].append(change)
        return changes

    def _eins_of(self, row: Row[Any], changes: Mapping[str, Sequence[Any]]) -> Iterator[str]:
        """That of the customer's row, then those that unfinished changes would give it. Raises CannotOpen."""
        context = customer_rows.context_of(row.customer_id)
        yield self._vault.open(Business, row.business, context).ein
        for change in changes.get(ordering_key(row.tenant, row.customer_id), ()):
            command = open_body(
                UPDATE_BUSINESS, str(change.command_id), change.body, self._commands
            )
            business = command.model_dump(exclude_unset=True)["business"]
            if (ein := business.get("ein")) is not None:
                yield ein

    async def _renew_hold(
        self,
        connection: AsyncConnection,
        row: Row[Any],
        digests: Sequence[bytes],
        eins: Sequence[str],
    ) -> bool:
        """Hold by each key what is held by one of them, and let go of the rest; false when that has to wait.

        A digest whose key is off the ring may be that of an unfinished change which is held by no other key. It stays
        until the change is over, or the key is back.
        """
        if not digests:
            return True
        candidates = [{*self._vault.ein_digests(ein)} for ein in dict.fromkeys(eins)]
        is_held = [
            number == 0 or not of_ein.isdisjoint(digests)
            for number, of_ein in enumerate(candidates)
        ]
        off_the_ring = Counter(map(LookupKeys.key_id_of, self._off_the_ring(digests)))
        if not all(is_held) and max(off_the_ring.values(), default=0) > sum(is_held):
            return False
        renewed = set[bytes]().union(*itertools.compress(candidates, is_held))
        for digest in sorted(renewed.difference(digests)):
            await connection.execute(
                _HOLD,
                {"tenant": row.tenant, "ein_digest": digest, "customer_id": row.customer_id},
            )
        let_go = {
            "of_tenant": row.tenant,
            "of_customer": row.customer_id,
            "digests": [digest for digest in digests if digest not in renewed],
        }
        await connection.execute(_LET_GO, let_go)
        return True

    async def _held(
        self, connection: AsyncConnection, ids: Sequence[UUID]
    ) -> Mapping[UUID, list[bytes]]:
        held = defaultdict[UUID, list[bytes]](list)
        for row in await connection.execute(_HELD, {"ids": ids}):
            held[row.customer_id].append(row.ein_digest)
        return held

    async def renew_accounts(
        self, connection: AsyncConnection, page: Sequence[tuple[UUID, bytes]]
    ) -> None:
        outdated = {
            draft_id: digest
            for draft_id, digest in page
            if LookupKeys.key_id_of(digest) != self._keys.key_ids[0]
        }
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

    def _is_held_by_each_key(self, digests: Sequence[bytes]) -> bool:
        """Whether as many EINs are held by one key of the ring as by any other, and none by a key that is off it."""
        held = Counter(map(LookupKeys.key_id_of, digests))
        return held.keys() == {*self._keys.key_ids} and len({*held.values()}) == 1

    def _off_the_ring(self, digests: Sequence[bytes]) -> list[bytes]:
        return [d for d in digests if LookupKeys.key_id_of(d) not in self._keys.key_ids]

    def _count(self, digests: Sequence[bytes]) -> None:
        """What was passed over: it may need each key whose digest it has."""
        self.left.update({*map(LookupKeys.key_id_of, digests)} - {self._keys.key_ids[0]})
