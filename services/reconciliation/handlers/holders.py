"""Records of providers who do not know our ids, under ours: by whom onboarding holds their records for.

A record that onboarding does not hold stands under the provider's own id, as a customer that we do not have.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Generic, TypeVar

from msgspec.structs import replace

from libs.contracts.reconciliation import Holder
from services.reconciliation.handlers.customers import CustomerLists
from services.reconciliation.ports import (
    CoreAccount,
    CoreCustomer,
    CoreExternalAccount,
    IdentityRecord,
    Onboarding,
    Page,
    ProviderList,
)

RowT = TypeVar("RowT", IdentityRecord, CoreCustomer, CoreExternalAccount, CoreAccount)

Holders = Mapping[str, Holder]


class ListWithHolders(Generic[RowT]):
    """See `ports.ProviderList`. Rows that have our ids already pass as they are.

    Args:
        ids: of the row's records of which the holder is looked up.
        with_holder: the row with our ids.
    """

    def __init__(
        self,
        records: ProviderList[RowT],
        onboarding: Onboarding,
        ids: Callable[[RowT], Iterable[str | None]],
        with_holder: Callable[[RowT, Holders], RowT],
    ) -> None:
        self._records: ProviderList[RowT] = records
        self._onboarding = onboarding
        self._ids: Callable[[RowT], Iterable[str | None]] = ids
        self._with_holder: Callable[[RowT, Holders], RowT] = with_holder

    @property
    def requests_each(self) -> int:
        return self._records.requests_each

    async def page(self, after: str | None, deadline: float) -> Page[RowT]:
        page = await self._records.page(after, deadline)
        return dataclasses.replace(page, rows=await self._with_holders(page.rows, deadline))

    async def by_ids(self, ids: Sequence[str], deadline: float) -> list[RowT]:
        return await self._with_holders(await self._records.by_ids(ids, deadline), deadline)

    async def of_customers(self, customer_ids: Sequence[str], deadline: float) -> list[RowT]:
        rows = await self._records.of_customers(customer_ids, deadline)
        return await self._with_holders(rows, deadline)

    async def _with_holders(self, rows: Sequence[RowT], deadline: float) -> list[RowT]:
        unknown = [row for row in rows if not row.customer_id]
        if not unknown:
            return list(rows)
        ids = [one for row in unknown for one in self._ids(row) if one]
        holders = await self._onboarding.holders(ids, deadline)
        return [row if row.customer_id else self._with_holder(row, holders) for row in rows]


def lists_with_holders(lists: CustomerLists, onboarding: Onboarding) -> CustomerLists:
    """The lists, their rows under our ids."""
    return CustomerLists(
        identity=ListWithHolders(
            lists.identity,
            onboarding,
            lambda row: (row.identity_id, row.business_record_id),
            lambda row, holders: _party_of_holder(row, row.identity_id, holders),
        ),
        core=ListWithHolders(
            lists.core,
            onboarding,
            lambda row: (row.core_id, row.business_record_id),
            lambda row, holders: _party_of_holder(row, row.core_id, holders),
        ),
        accounts=ListWithHolders(
            lists.accounts,
            onboarding,
            lambda row: (row.core_id, row.account_id),
            lambda row, holders: _account_of_holder(row, row.account_id, row.core_id, holders),
        ),
    )


def external_accounts_with_holders(
    listed: ProviderList[CoreExternalAccount], onboarding: Onboarding
) -> ProviderList[CoreExternalAccount]:
    """The list, its rows under our ids."""
    return ListWithHolders(
        listed,
        onboarding,
        lambda row: (row.external_account_id,),
        lambda row, holders: _account_of_holder(row, row.external_account_id, None, holders),
    )


PartyT = TypeVar("PartyT", IdentityRecord, CoreCustomer)
AccountT = TypeVar("AccountT", CoreExternalAccount, CoreAccount)


def _party_of_holder(row: PartyT, record_id: str, holders: Holders) -> PartyT:
    holder = holders.get(record_id)
    if holder is not None:
        return replace(row, customer_id=holder.party_id, business_customer_id=holder.customer_id)
    business = holders.get(row.business_record_id or "")
    business_id = business.customer_id if business else row.business_record_id
    return replace(row, customer_id=record_id, business_customer_id=business_id)


def _account_of_holder(
    row: AccountT, record_id: str, core_id: str | None, holders: Holders
) -> AccountT:
    """An account that we hold is of the customer whose record at the provider it belongs to."""
    holder = holders.get(record_id)
    if holder is None:
        return replace(row, customer_id=record_id)
    return replace(row, customer_id=holders.get(core_id or "", holder).customer_id)
