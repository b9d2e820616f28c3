"""Reads of customers, and who owns an account: scoped by the principal, but for three that say why."""

from __future__ import annotations

from libs.contracts.customers import GetCustomer, ListCustomers
from libs.contracts.errors import NotFound
from libs.contracts.ids import id_of, parse_id
from libs.contracts.operation import PageInfo
from libs.contracts.ownership import (
    AccountHolders,
    AccountOwner,
    CustomerOwner,
    FindAccountHolders,
    FindAccountOwner,
    FindCustomer,
    FindExternalAccount,
    LinkedExternalAccounts,
    ListLinkedExternalAccounts,
    ListOwnedAccounts,
    OwnedAccounts,
)
from libs.contracts.principal import Principal
from libs.contracts.result import Result
from libs.persistence.engine import Database
from services.onboarding import views
from services.onboarding.repository import accounts
from services.onboarding.repository.store import Store
from services.onboarding.states import FINAL

LARGEST_PAGE = 1000


class Queries:
    """The query consumer enforces deadlines; every statement has the database's own timeout."""

    def __init__(self, database: Database, store: Store) -> None:
        self._database = database
        self._store = store

    async def get_customer(self, principal: Principal, command: GetCustomer, _: float) -> Result:
        customer_id = id_of(command.customer_id)
        async with self._database.snapshot() as connection:
            file = await self._store.file(connection, principal.tenant, customer_id)
        if file is None:
            raise NotFound
        return Result(data=views.customer(file))

    async def list_customers(
        self, principal: Principal, command: ListCustomers, _: float
    ) -> Result:
        async with self._database.snapshot() as connection:
            customers, total = await self._store.customers.page(
                connection,
                principal.tenant,
                command.status,
                limit=command.limit,
                offset=(command.page - 1) * command.limit,
            )
            files = await self._store.complete(connection, customers)
        return Result(
            data=[views.customer(file) for file in files],
            pagination=PageInfo(limit=command.limit, total=total, page=command.page),
        )

    async def find_account_owner(
        self, principal: Principal, command: FindAccountOwner, _: float
    ) -> Result:
        # One statement needs no transaction around it: this read is asked for with every read of an account.
        async with self._database.autocommit() as connection:
            owner = await accounts.find_owner(connection, principal, command.account_id)
        if owner is None:
            raise NotFound
        return Result(data=AccountOwner(account_id=command.account_id, customer_id=str(owner)))

    async def find_external_account(
        self, principal: Principal, command: FindExternalAccount, _: float
    ) -> Result:
        external_account_id = command.external_account_id
        # As for the owner of an account: it is asked for with every wire.
        async with self._database.autocommit() as connection:
            owner = await self._store.external_accounts.owner_of(
                connection, principal.tenant, external_account_id
            )
        if owner is None or principal.customer_id not in (None, owner.customer_id):
            raise NotFound
        return Result(data=owner)

    async def list_owned_accounts(
        self, principal: Principal, command: ListOwnedAccounts, _: float
    ) -> Result:
        limit = min(max(command.limit, 1), LARGEST_PAGE)
        async with self._database.transaction() as connection:
            owned = await accounts.page_of_owned(connection, principal, command.after, limit)
        return Result(
            data=OwnedAccounts(
                accounts=[
                    AccountOwner(account_id=account_id, customer_id=str(customer_id))
                    for account_id, customer_id in owned
                ],
                next_after=owned[-1][0] if len(owned) == limit else None,
            )
        )

    async def find_account_holders(
        self, _: Principal, command: FindAccountHolders, __: float
    ) -> Result:
        async with self._database.autocommit() as connection:
            holders = await accounts.find_holders(connection, command.account_ids[:LARGEST_PAGE])
        return Result(data=AccountHolders(holders=holders))

    async def list_linked_external_accounts(
        self, _: Principal, command: ListLinkedExternalAccounts, __: float
    ) -> Result:
        customer_id = parse_id(command.customer_id)
        if customer_id is None:
            return Result(data=LinkedExternalAccounts(external_accounts=[]))
        async with self._database.autocommit() as connection:
            linked = await self._store.external_accounts.linked(connection, customer_id)
        return Result(data=LinkedExternalAccounts(external_accounts=linked))

    async def find_customer(self, _: Principal, command: FindCustomer, __: float) -> Result:
        """Of any tenant: services ask about what a provider reported, which knows our id only."""
        customer_id = id_of(command.customer_id)
        # As for the owner of an account: it is asked for with the wires of each customer.
        async with self._database.autocommit() as connection:
            customer = await self._store.customers.find_owner(connection, customer_id)
        if customer is None:
            raise NotFound
        return Result(
            data=CustomerOwner(
                customer_id=str(customer.customer_id),
                tenant=customer.tenant,
                business_name=customer.business.business_name,
                dba=customer.business.dba,
                is_final=customer.status in FINAL,
            )
        )
