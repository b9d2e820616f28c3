"""Asking onboarding who owns what, and remembering what never changes.

Onboarding scopes its answers by the principal that asks. Only positive answers are remembered: what is not linked now
may be in a moment. An external account that was unlinked after it was remembered is refused by core banking.
"""

from __future__ import annotations

from libs.contracts import onboarding_operations as onboarding
from libs.contracts import ownership as contract
from libs.contracts.errors import ExternalAccountNotLinked, NotFound
from libs.contracts.principal import Principal
from libs.handling.asking import Asking
from libs.runtime.memory import Memory
from services.payments.adapters.questions import Questions

Key = tuple[str, str | None, str]


class OnboardingOwnership:
    """See `ports.Ownership`. `remembered`: so many accounts, and as many external accounts."""

    def __init__(self, asking: Asking, *, remembered: int) -> None:
        self._asking = asking
        self._accounts: Memory[Key, str] = Memory(remembered)
        self._external_accounts: Memory[Key, str] = Memory(remembered)
        self._questions = Questions()

    async def require_account(self, principal: Principal, account_id: str, deadline: float) -> None:
        key = (principal.tenant, principal.customer_id, account_id)
        if self._accounts.recall(key) is not None:
            return

        async def ask() -> None:
            owner = await self._asking.ask(
                onboarding.FIND_ACCOUNT_OWNER,
                principal,
                contract.FindAccountOwner(account_id=account_id),
                contract.AccountOwner,
                deadline,
            )
            self._accounts.keep(key, owner.customer_id)

        await self._questions.ask(("account", *key), ask)

    async def require_external_account(
        self, principal: Principal, external_account_id: str, deadline: float
    ) -> None:
        key = (principal.tenant, principal.customer_id, external_account_id)
        if self._external_accounts.recall(key) is not None:
            return

        async def ask() -> None:
            owner = await self._asking.ask(
                onboarding.FIND_EXTERNAL_ACCOUNT,
                principal,
                contract.FindExternalAccount(external_account_id=external_account_id),
                contract.ExternalAccountOwner,
                deadline,
            )
            self._external_accounts.keep(key, owner.customer_id)

        try:
            await self._questions.ask(("external_account", *key), ask)
        except NotFound as error:
            raise ExternalAccountNotLinked from error
