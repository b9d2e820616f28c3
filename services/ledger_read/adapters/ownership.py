"""Asking onboarding who owns what, and remembering what never changes.

Onboarding scopes its answers by the principal that asks. Only positive answers are remembered: what does not exist now
may exist in a moment. Lists are asked for every time.
"""

from __future__ import annotations

from libs.contracts import onboarding_operations as onboarding
from libs.contracts.ownership import (
    AccountOwner,
    CustomerOwner,
    FindAccountOwner,
    FindCustomer,
    ListOwnedAccounts,
    OwnedAccounts,
)
from libs.contracts.principal import SERVICE, Principal
from libs.handling.asking import Asking, Asks
from libs.runtime.memory import Memory

PAGE = 1000


class OnboardingOwnership:
    """See `ports.Ownership`.

    Args:
        patience_seconds: how long onboarding may take to answer before it counts as away.
        remembered: owners of single accounts, and tenants of customers, kept in memory.
    """

    def __init__(self, caller: Asks, *, patience_seconds: float, remembered: int) -> None:
        self._asking = Asking(caller, patience_seconds=patience_seconds)
        self._owners: Memory[tuple[str, str | None, str], str] = Memory(remembered)
        self._tenants: Memory[str, str] = Memory(remembered)

    async def require_account(self, principal: Principal, account_id: str, deadline: float) -> None:
        key = (principal.tenant, principal.customer_id, account_id)
        if self._owners.recall(key) is not None:
            return
        owner = await self._asking.ask(
            onboarding.FIND_ACCOUNT_OWNER,
            principal,
            FindAccountOwner(account_id=account_id),
            AccountOwner,
            deadline,
        )
        self._owners.keep(key, owner.customer_id)

    async def account_ids(self, principal: Principal, deadline: float) -> list[str]:
        ids: list[str] = []
        after: str | None = None
        while True:
            page = await self._asking.ask(
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
                raise self._asking.broken(onboarding.LIST_OWNED_ACCOUNTS)
            after = page.next_after

    async def customer(self, customer_id: str, deadline: float) -> CustomerOwner:
        return await self._asking.ask(
            onboarding.FIND_CUSTOMER,
            SERVICE,
            FindCustomer(customer_id=customer_id),
            CustomerOwner,
            deadline,
        )

    async def tenant_of(self, customer_id: str, deadline: float) -> str:
        tenant = self._tenants.recall(customer_id)
        if tenant is None:
            tenant = (await self.customer(customer_id, deadline)).tenant
            self._tenants.keep(customer_id, tenant)
        return tenant
