"""Whether a principal may send from an account to an external account, asked of onboarding.

Positive answers are cached: who owns an account never changes, and an external account that was unlinked after its
answer was cached is refused by core banking. That a customer is open does change, and is cached for seconds.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable

from cachetools import LRUCache, TTLCache

from libs.contracts import onboarding_operations as onboarding
from libs.contracts import ownership as contract
from libs.contracts.errors import ExternalAccountNotLinked, InvalidState, NotFound
from libs.contracts.principal import SERVICE, Principal
from libs.handling.account_owners import AccountOwners
from libs.handling.query_client import QueryClient
from libs.handling.single_flight import SingleFlight
from services.payments.models import Creditor, Payee, PostalAddress

Key = tuple[str, str | None, str]

OPEN_SECONDS = 5.0
"""How long a customer counts as open after onboarding said so: one query for a customer's wires of this time."""


class OnboardingOwnership:
    """See `ports.Ownership`. `capacity`: answers cached about accounts, as many about external accounts, and as
    many about customers.
    """

    def __init__(
        self,
        query_client: QueryClient,
        *,
        capacity: int,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._query_client = query_client
        self._accounts = AccountOwners(query_client, capacity=capacity)
        self._external_accounts: LRUCache[Key, Payee] = LRUCache(capacity)
        self._calls: SingleFlight[Payee] = SingleFlight()
        self._open_customers: TTLCache[str, bool] = TTLCache(capacity, OPEN_SECONDS, clock)
        self._customer_calls: SingleFlight[bool] = SingleFlight()

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
                math.inf,
            )
            payee = self._external_accounts[key] = _payee(owner)
            return payee

        try:
            return await self._calls.run(key, ask, deadline)
        except NotFound as error:
            raise ExternalAccountNotLinked from error

    async def require_open_customer(
        self, principal: Principal, customer_id: str, deadline: float
    ) -> None:
        if customer_id in self._open_customers:
            return

        async def ask() -> bool:
            try:
                is_open = not (await self._customer(principal, customer_id, math.inf)).is_final
            except NotFound:
                # Its account is known: onboarding's database went back, and may get its customer again.
                is_open = True
            if is_open:
                self._open_customers[customer_id] = True
            return is_open

        if not await self._customer_calls.run(customer_id, ask, deadline):
            raise InvalidState("The customer was denied or canceled, and sends no wires any more.")

    async def require_customer(
        self, principal: Principal, customer_id: str, deadline: float
    ) -> None:
        if (await self._customer(SERVICE, customer_id, deadline)).tenant != principal.tenant:
            raise NotFound

    async def _customer(
        self, principal: Principal, customer_id: str, deadline: float
    ) -> contract.CustomerOwner:
        return await self._query_client.query(
            onboarding.FIND_CUSTOMER,
            principal,
            contract.FindCustomer(customer_id=customer_id),
            contract.CustomerOwner,
            deadline,
        )


def _payee(owner: contract.ExternalAccountOwner) -> Payee:
    address = PostalAddress(**owner.address_on_account.model_dump())
    return Payee(Creditor(owner.name_on_account, address), owner.linked_at)
