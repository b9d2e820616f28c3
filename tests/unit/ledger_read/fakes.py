"""In place of onboarding, which answers queries out of a table, as its rows are scoped; and of stored loads."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from libs.contracts.deposit_locations import DepositLocation, ListDepositLocations
from libs.contracts.errors import NotFound
from libs.contracts.model import Command
from libs.contracts.operation import Operation
from libs.contracts.ownership import (
    FindAccountHolders,
    FindAccountOwner,
    FindCustomer,
    ListOwnedAccounts,
)
from libs.contracts.principal import Family, Principal
from services.ledger_read.deposit_loads import DepositLoads
from services.ledger_read.models import DepositLoad, Page

PARTNER = Principal("t_1", "Partner One", Family.PARTNER, "sub_1")
CUSTOMER = Principal("t_1", "Partner One", Family.CUSTOMER, "sub_2", "c_1")


class NoLoads(DepositLoads):
    """None is stored, and none is kept."""

    def __init__(self) -> None:
        pass

    async def add(self, load: DepositLoad) -> None:
        pass

    async def page(self, command: ListDepositLocations) -> Page[DepositLocation]:
        return Page([], 0, None)


@dataclass
class Onboarding:
    """`accounts`: account id -> (tenant, customer id). `customers`: id -> whether it is final, of those without
    an account. `failure`: what every query raises.
    """

    accounts: dict[str, tuple[str, str]] = field(default_factory=dict)
    customers: dict[str, bool] = field(default_factory=dict)
    failure: Exception | None = None
    asked: Counter[str] = field(default_factory=Counter)
    asked_for: set[Principal] = field(default_factory=set)
    page: int = 1000

    async def query(
        self, operation: Operation, principal: Principal, command: Command, deadline: float
    ) -> Any:
        self.asked[operation.name] += 1
        self.asked_for.add(principal)
        if self.failure is not None:
            raise self.failure
        return {"data": self._answer(principal, command)}

    def _answer(self, principal: Principal, command: Command) -> Any:
        match command:
            case FindAccountOwner():
                for account in self._owned(principal):
                    if account["account_id"] == command.account_id:
                        return account
                raise NotFound
            case ListOwnedAccounts():
                after = command.after or ""
                rest = [a for a in self._owned(principal) if a["account_id"] > after]
                page = rest[: self.page]
                more = len(rest) > len(page)
                return {"accounts": page, "next_after": page[-1]["account_id"] if more else None}
            case FindAccountHolders():
                holders = [
                    {
                        "account_id": account_id,
                        "customer_id": self.accounts[account_id][1],
                        "business_name": "Acme Incorporated",
                        "dba": "Acme",
                    }
                    for account_id in command.account_ids
                    if account_id in self.accounts
                ]
                return {"holders": holders}
            case FindCustomer() if command.customer_id in self.customers:
                return {
                    "customer_id": command.customer_id,
                    "tenant": "t_1",
                    "business_name": "Acme Incorporated",
                    "dba": "Acme",
                    "is_final": self.customers[command.customer_id],
                }
            case FindCustomer():
                for tenant, customer_id in self.accounts.values():
                    if customer_id == command.customer_id:
                        return {
                            "customer_id": customer_id,
                            "tenant": tenant,
                            "business_name": "Acme Incorporated",
                            "dba": "Acme",
                        }
                raise NotFound
            case _:
                raise AssertionError(type(command))

    def _owned(self, principal: Principal) -> list[dict[str, str]]:
        return [
            {"account_id": account_id, "customer_id": customer_id}
            for account_id, (tenant, customer_id) in sorted(self.accounts.items())
            if tenant == principal.tenant and principal.customer_id in (None, customer_id)
        ]
