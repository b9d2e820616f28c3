"""Asking onboarding who owns what. Lists are asked for every time; who owns an account never changes and is cached."""

from __future__ import annotations

from collections.abc import Sequence

from cachetools import LRUCache

from libs.contracts import onboarding_operations as onboarding
from libs.contracts.accounts import LinkedExternalAccount
from libs.contracts.ownership import (
    AccountHolder,
    AccountHolders,
    CustomerOwner,
    FindAccountHolders,
    FindCustomer,
    LinkedExternalAccounts,
    ListLinkedExternalAccounts,
    ListOwnedAccounts,
    OwnedAccounts,
)
from libs.contracts.principal import SERVICE, Principal
from libs.handling.account_owners import AccountOwners
from libs.handling.query_client import QueryClient, QuerySender

PAGE = 1000


class OnboardingOwnership:
    """See `ports.Ownership`.

    Args:
        patience_seconds: how long onboarding may take to answer before it counts as away.
        remembered: owners of single accounts, and tenants of customers, kept in memory.
    """

    def __init__(self, caller: QuerySender, *, patience_seconds: float, remembered: int) -> None:
        self._query_client = QueryClient(caller, patience_seconds=patience_seconds)
        self._owners = AccountOwners(self._query_client, capacity=remembered)
        self._tenants: LRUCache[str, str] = LRUCache(remembered)

    async def require_account(self, principal: Principal, account_id: str, deadline: float) -> None:
        await self._owners.require(principal, account_id, deadline)

    async def account_ids(self, principal: Principal, deadline: float) -> list[str]:
        ids: list[str] = []
        after: str | None = None
        while True:
            page = await self._query_client.query(
                onboarding.LIST_OWNED_ACCOUNTS,
                principal,
                ListOwnedAccounts(after=after, limit=PAGE),
                OwnedAccounts,
                deadline,
            )
            ids += [owner.account_id for owner in page.accounts]
            if page.next_after is None:
                return ids
            if page.next_after == after:
                raise self._query_client.broken(onboarding.LIST_OWNED_ACCOUNTS)
            after = page.next_after

    async def customer(
        self, principal: Principal, customer_id: str, deadline: float
    ) -> CustomerOwner:
        return await self._query_client.query(
            onboarding.FIND_CUSTOMER,
            principal,
            FindCustomer(customer_id=customer_id),
            CustomerOwner,
            deadline,
        )

    async def holders(
        self, principal: Principal, account_ids: Sequence[str], deadline: float
    ) -> dict[str, AccountHolder]:
        found: dict[str, AccountHolder] = {}
        for start in range(0, len(account_ids), PAGE):
            answer = await self._query_client.query(
                onboarding.FIND_ACCOUNT_HOLDERS,
                principal,
                FindAccountHolders(account_ids=list(account_ids[start : start + PAGE])),
                AccountHolders,
                deadline,
            )
            found |= {holder.account_id: holder for holder in answer.holders}
        return found

    async def external_accounts(
        self, principal: Principal, customer_id: str, deadline: float
    ) -> list[LinkedExternalAccount]:
        answer = await self._query_client.query(
            onboarding.LIST_LINKED_EXTERNAL_ACCOUNTS,
            principal,
            ListLinkedExternalAccounts(customer_id=customer_id),
            LinkedExternalAccounts,
            deadline,
        )
        return answer.external_accounts

    async def tenant_of(self, customer_id: str, deadline: float) -> str:
        tenant = self._tenants.get(customer_id)
        if tenant is None:
            tenant = (await self.customer(SERVICE, customer_id, deadline)).tenant
            self._tenants[customer_id] = tenant
        return tenant
