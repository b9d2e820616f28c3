"""Queries of accounts, balances and external accounts: ownership is checked first, then the provider is asked."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from libs.contracts import accounts as contract
from libs.contracts import ledger_read_operations as operations
from libs.contracts.errors import NotFound
from libs.contracts.ownership import CustomerOwner
from libs.contracts.principal import Principal
from libs.contracts.result import Result
from libs.handling.queries import QueryHandler
from services.ledger_read.ports import Financial, Ownership


class AccountQueries:
    """Deadlines are Unix seconds."""

    def __init__(self, ownership: Ownership, financial: Financial) -> None:
        self._ownership = ownership
        self._financial = financial

    def by_operation(self) -> Mapping[str, QueryHandler]:
        return {
            operations.LIST_PARTNER_ACCOUNTS.name: self.list_partner_accounts,
            operations.GET_ACCOUNT.name: self.get_account,
            operations.GET_BALANCE.name: self.get_balance,
            operations.GET_EXTERNAL_ACCOUNT.name: self.get_external_account,
            operations.LIST_CUSTOMER_ACCOUNTS.name: self.list_customer_accounts,
            operations.LIST_EXTERNAL_ACCOUNTS.name: self.list_external_accounts,
        }

    async def get_balance(
        self, principal: Principal, command: contract.GetBalance, deadline: float
    ) -> Result:
        await self._ownership.require_account(principal, command.account_id, deadline)
        return Result(await self._financial.balance(command.account_id, deadline))

    async def get_account(
        self, principal: Principal, command: contract.GetAccount, deadline: float
    ) -> Result:
        await self._ownership.require_account(principal, command.account_id, deadline)
        return Result(await self._financial.account(principal, command.account_id, deadline))

    async def get_external_account(
        self, principal: Principal, command: contract.GetExternalAccount, deadline: float
    ) -> Result:
        await self._ownership.require_account(principal, command.account_id, deadline)
        return Result(
            await self._financial.external_account(principal, command.account_id, deadline)
        )

    async def list_partner_accounts(
        self, principal: Principal, _: contract.ListPartnerAccounts, deadline: float
    ) -> Result:
        """The list's name is the partner's (interface §4)."""
        ids = await self._ownership.account_ids(principal, deadline)
        accounts = await self._financial.accounts(principal, ids, deadline)
        items = [contract.PartnerAccountSummary(**_fields(a, _PARTNER_ITEM)) for a in accounts]
        return Result(
            contract.PartnerAccountList(name=principal.tenant_name, dba_name=None, accounts=items)
        )

    async def list_customer_accounts(
        self, principal: Principal, _: contract.ListCustomerAccounts, deadline: float
    ) -> Result:
        customer = await self._customer(principal, deadline)
        ids = await self._ownership.account_ids(principal, deadline)
        items = await self._financial.summaries(ids, deadline)
        return Result(
            contract.AccountList(name=customer.business_name, dba_name=customer.dba, accounts=items)
        )

    async def list_external_accounts(
        self, principal: Principal, _: contract.ListExternalAccounts, deadline: float
    ) -> Result:
        customer = await self._customer(principal, deadline)
        return Result(
            await self._financial.external_accounts(principal, customer.customer_id, deadline)
        )

    async def _customer(self, principal: Principal, deadline: float) -> CustomerOwner:
        """The one customer that a key of the customer family is bound to. Raises NotFound: it is not the tenant's."""
        if principal.customer_id is None:
            raise NotFound
        customer = await self._ownership.customer(principal, principal.customer_id, deadline)
        if customer.tenant != principal.tenant:
            raise NotFound
        return customer


_PARTNER_ITEM = tuple(contract.PartnerAccountSummary.model_fields)


def _fields(account: contract.Account, names: tuple[str, ...]) -> dict[str, Any]:
    return {name: getattr(account, name) for name in names}
