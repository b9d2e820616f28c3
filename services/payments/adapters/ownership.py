"""Whether a principal may send from an account to an external account, asked of onboarding.

Positive answers are cached. An external account that was unlinked after its answer was cached is refused by core
banking.
"""

from __future__ import annotations

from cachetools import LRUCache

from libs.contracts import onboarding_operations as onboarding
from libs.contracts import ownership as contract
from libs.contracts.errors import ExternalAccountNotLinked, NotFound
from libs.contracts.principal import SERVICE, Principal
from libs.handling.account_owners import AccountOwners
from libs.handling.query_client import QueryClient
from libs.handling.single_flight import SingleFlight
from services.payments.models import Creditor, Payee, PostalAddress

Key = tuple[str, str | None, str]


class OnboardingOwnership:
    """See `ports.Ownership`. `capacity`: answers cached about accounts, and as many about external accounts."""

    def __init__(self, query_client: QueryClient, *, capacity: int) -> None:
        self._query_client = query_client
        self._accounts = AccountOwners(query_client, capacity=capacity)
        self._external_accounts: LRUCache[Key, Payee] = LRUCache(capacity)
        self._calls: SingleFlight[Payee] = SingleFlight()

    async def require_account(self, principal: Principal, account_id: str, deadline: float) -> None:
        await self._accounts.require(principal, account_id, deadline)

    async def require_external_account(
        self, principal: Principal, external_account_id: str, deadline: float
    ) -> Payee:
        key = (principal.tenant, principal.customer_id, external_account_id)
        if (cached := self._external_accounts.get(key)) is not None:
            return cached

        async def ask() -> Payee:
            owner = await self._query_client.query(
                onboarding.FIND_EXTERNAL_ACCOUNT,
                principal,
                contract.FindExternalAccount(external_account_id=external_account_id),
                contract.ExternalAccountOwner,
                deadline,
            )
            payee = _payee(owner)
            if payee.creditor is not None and payee.linked_at is not None:
                # Else it is not cached: onboarding may be upgraded at any time.
                self._external_accounts[key] = payee
            return payee

        try:
            return await self._calls.run(key, ask)
        except NotFound as error:
            raise ExternalAccountNotLinked from error

    async def require_customer(
        self, principal: Principal, customer_id: str, deadline: float
    ) -> None:
        owner = await self._query_client.query(
            onboarding.FIND_CUSTOMER,
            SERVICE,
            contract.FindCustomer(customer_id=customer_id),
            contract.CustomerOwner,
            deadline,
        )
        if owner.tenant != principal.tenant:
            raise NotFound


def _payee(owner: contract.ExternalAccountOwner) -> Payee:
    if owner.name_on_account is None or owner.address_on_account is None:
        return Payee(None, owner.linked_at)
    address = PostalAddress(**owner.address_on_account.model_dump())
    return Payee(Creditor(owner.name_on_account, address), owner.linked_at)
