"""Customers: the business, its persons and accounts against both providers.

All these records of one customer are read together, so that one look compares them all. Its external accounts, which
may be many, are compared one by one (`handlers.external_accounts`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from libs.contracts.reconciliation import RecordedCustomer
from libs.gathering import gather_or_cancel
from services.reconciliation.handlers.accounts import CLOSED, judge_accounts
from services.reconciliation.handlers.being_made import being_made
from services.reconciliation.handlers.comparison import Scan, suspects
from services.reconciliation.handlers.parties import (
    ProviderRecord,
    judge_core,
    judge_identity,
    of_core,
    of_identity,
)
from services.reconciliation.models import IN_FLIGHT, Finding, Scanned
from services.reconciliation.ports import (
    CoreAccount,
    CoreCustomer,
    IdentityRecord,
    Onboarding,
    ProviderList,
)
from services.reconciliation.sensitive_digests import Digest

RowT = TypeVar("RowT")


@dataclass(frozen=True, slots=True)
class CustomerLists:
    identity: ProviderList[IdentityRecord]
    core: ProviderList[CoreCustomer]
    accounts: ProviderList[CoreAccount]


@dataclass(slots=True)
class _There:
    """All that the providers have of some customers."""

    identity: list[ProviderRecord] = field(default_factory=list)
    core: list[ProviderRecord] = field(default_factory=list)
    accounts: list[CoreAccount] = field(default_factory=list)

    def keys_by_owner(self) -> list[tuple[str, str]]:
        """The customers of records, with the idempotency keys under which these were made, where those are shown."""
        records = [(one.business_id, one.made_under) for one in (*self.identity, *self.core)]
        records += [(one.customer_id, one.made_under) for one in self.accounts]
        return [(owner, key) for owner, key in records if key is not None]


class CustomerComparison:
    """Keys are the ids of businesses. A person whom a provider has and the business has not is `business/person`."""

    name = "customers"
    starts_anew = frozenset[str]()

    def __init__(self, onboarding: Onboarding, providers: CustomerLists, digest: Digest) -> None:
        self._onboarding = onboarding
        self._providers = providers
        self._digest = digest

    @property
    def scans(self) -> Mapping[str, Scan]:
        return {
            "ours": self._ours,
            "identity": self._identity,
            "core": self._core,
            "accounts": self._accounts,
        }

    async def _ours(self, after: str | None, deadline: float) -> Scanned:
        page = await self._onboarding.page_of_customers(after, deadline)
        ours = {customer.customer_id: customer for customer in page.rows}
        there = await self._read(ours, (), deadline)
        findings = {
            key: _judge(key, customer, there, self._digest) for key, customer in ours.items()
        }
        return Scanned(len(ours), suspects(findings), page.next_after)

    async def _identity(self, after: str | None, deadline: float) -> Scanned:
        page = await self._providers.identity.page(after, deadline)
        return await self._unknown_records(of_identity(page.rows), page.next_after, deadline)

    async def _core(self, after: str | None, deadline: float) -> Scanned:
        page = await self._providers.core.page(after, deadline)
        return await self._unknown_records(of_core(page.rows), page.next_after, deadline)

    async def _accounts(self, after: str | None, deadline: float) -> Scanned:
        """Suspects are the owners of open accounts that we do not hold for them."""
        page = await self._providers.accounts.page(after, deadline)
        owners = {row.account_id: row.customer_id for row in page.rows if row.status != CLOSED}
        ours = await self._onboarding.customers(list(owners.values()), deadline)
        suspected = [
            owner
            for one, owner in owners.items()
            if owner not in ours or one not in _account_ids(ours[owner])
        ]
        return Scanned(len(page.rows), suspected, page.next_after)

    async def _unknown_records(
        self, records: Sequence[ProviderRecord], next_after: str | None, deadline: float
    ) -> Scanned:
        """Suspects are the owners of records that are open and that we do not hold for them."""
        opened = [record for record in records if not record.is_closed]
        ours = await self._onboarding.customers([r.business_id for r in opened], deadline)
        suspected = [
            _key(record, customer)
            for record in opened
            if (customer := ours.get(record.business_id)) is None
            or record.record_id not in _ids_of(customer)
        ]
        return Scanned(len(records), suspected, next_after)

    async def look(self, keys: Sequence[str], deadline: float) -> Mapping[str, Finding]:
        businesses = [key.partition("/")[0] for key in keys]
        ours = await self._onboarding.customers(businesses, deadline)
        strangers = [person for key in keys if (person := key.partition("/")[2])]
        persons = [party.customer_id for one in ours.values() for party in one.parties]
        # By our ids too: that finds a second record of the same customer.
        there = await self._read(ours, [*businesses, *persons, *strangers], deadline)
        unknown = {*businesses} - ours.keys()
        made = [(owner, key) for owner, key in there.keys_by_owner() if owner in unknown]
        in_flight = await being_made(self._onboarding, made, deadline)
        return {
            key: IN_FLIGHT
            if business in in_flight
            else _judge(key, ours.get(business), there, self._digest)
            for key, business in zip(keys, businesses, strict=True)
        }

    async def _read(
        self, ours: Mapping[str, RecordedCustomer], customer_ids: Sequence[str], deadline: float
    ) -> _There:
        """The providers' records of these customers.

        Args:
            customer_ids: all records of these, beside those whose ids we hold.
        """
        # Businesses first, as `by_ids` has it.
        parties = sorted(
            (party for customer in ours.values() for party in customer.parties),
            key=lambda party: party.kind != "business",
        )
        accounts = [a.account_id for one in ours.values() for a in one.accounts]
        there = _There()

        async def read_identity() -> None:
            ids = [party.identity_id for party in parties]
            found = await _both(self._providers.identity, ids, customer_ids, deadline)
            there.identity = list({one.record_id: one for one in of_identity(found)}.values())

        async def read_core() -> None:
            ids = [party.core_id for party in parties]
            found = await _both(self._providers.core, ids, customer_ids, deadline)
            there.core = list({one.record_id: one for one in of_core(found)}.values())

        async def read_accounts() -> None:
            found = await _both(self._providers.accounts, accounts, customer_ids, deadline)
            there.accounts = list({one.account_id: one for one in found}.values())

        await gather_or_cancel(
            (read_identity(), read_core(), read_accounts()), name="customer-records"
        )
        return there


async def _both(
    records: ProviderList[RowT],
    ids: Iterable[str | None],
    customer_ids: Sequence[str],
    deadline: float,
) -> list[RowT]:
    known = [one for one in ids if one is not None]
    return [
        *await records.by_ids(known, deadline),
        *await records.of_customers(customer_ids, deadline),
    ]


def _judge(key: str, customer: RecordedCustomer | None, there: _There, digest: Digest) -> Finding:
    if customer is not None and customer.command_open:
        return IN_FLIGHT
    business, _, person = key.partition("/")
    if person:
        at_identity = _of_stranger(there.identity, customer, business, person)
        at_core = _of_stranger(there.core, customer, business, person)
        return [
            *judge_identity(None, at_identity, digest),
            *judge_core(None, at_core, digest),
        ]
    held = _ids_of(customer) if customer is not None else set()
    return [
        *judge_identity(customer, _of(there.identity, customer, business, held), digest),
        *judge_core(customer, _of(there.core, customer, business, held), digest),
        *judge_accounts(
            business,
            customer,
            [
                one
                for one in there.accounts
                if one.customer_id == business or one.account_id in held
            ],
        ),
    ]


def _of(
    records: Iterable[ProviderRecord],
    customer: RecordedCustomer | None,
    business: str,
    held: set[str],
) -> list[ProviderRecord]:
    """Those under the key `business`. A record of a stranger stands under the stranger's own key, see `_key`."""
    return [
        record
        for record in records
        if record.record_id in held
        or (record.business_id == business and _key(record, customer) == business)
    ]


def _of_stranger(
    records: Iterable[ProviderRecord], customer: RecordedCustomer | None, business: str, person: str
) -> list[ProviderRecord]:
    if customer is not None and _has_party(customer, person):
        return []
    return [r for r in records if (r.business_id, r.customer_id) == (business, person)]


def _key(record: ProviderRecord, customer: RecordedCustomer | None) -> str:
    if record.customer_id == record.business_id:
        return record.business_id
    if customer is not None and _has_party(customer, record.customer_id):
        return record.business_id
    return f"{record.business_id}/{record.customer_id}"


def _has_party(customer: RecordedCustomer, party_id: str) -> bool:
    return any(party.customer_id == party_id for party in customer.parties)


def _ids_of(customer: RecordedCustomer) -> set[str]:
    """The providers' ids of all that belongs to the customer."""
    ids = {party.identity_id for party in customer.parties}
    ids |= {party.core_id for party in customer.parties}
    return {one for one in ids if one is not None} | _account_ids(customer)


def _account_ids(customer: RecordedCustomer) -> set[str]:
    return {account.account_id for account in customer.accounts}
