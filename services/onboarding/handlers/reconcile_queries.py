"""What reconciliation asks of onboarding. Not scoped by a tenant: only services can ask, and they compare whole
books.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from uuid import UUID

from libs.contracts import onboarding_operations as table
from libs.contracts import reconciliation as r
from libs.contracts.ids import parse_id
from libs.contracts.principal import Principal
from libs.contracts.result import Result
from libs.handling.feeds import feed_positions
from libs.handling.queries import QueryHandler
from libs.persistence.engine import Database
from services.onboarding.repository import holders
from services.onboarding.repository.reconciliation import (
    CustomerReader,
    answers_by_ids,
    page_of_answers,
)
from services.onboarding.repository.recorded_external_accounts import ExternalAccountReader
from services.onboarding.repository.vault import Vault


class ReconcileQueries:
    """Deadlines are kept by the caller: every statement is bounded by the database's own."""

    def __init__(self, database: Database, vault: Vault) -> None:
        self._database = database
        self._customers = CustomerReader(vault)
        self._external_accounts = ExternalAccountReader(vault)

    def by_operation(self) -> Mapping[str, QueryHandler]:
        return {
            table.PAGE_RECORDED_CUSTOMERS.name: self.page_customers,
            table.FIND_RECORDED_CUSTOMERS.name: self.find_customers,
            table.PAGE_RECORDED_EXTERNAL_ACCOUNTS.name: self.page_external_accounts,
            table.FIND_RECORDED_EXTERNAL_ACCOUNTS.name: self.find_external_accounts,
            table.FIND_HOLDERS.name: self.find_holders,
            table.PAGE_ANSWERED_COMMANDS.name: self.page_answers,
            table.FIND_ANSWERED_COMMANDS.name: self.find_answers,
            table.LIST_FEED_POSITIONS.name: feed_positions(self._database),
        }

    async def page_customers(self, _: Principal, command: r.PageCustomers, __: float) -> Result:
        after = parse_id(command.after) if command.after else None
        async with self._database.snapshot() as connection:
            found = await self._customers.page(
                connection, after, command.limit, external_accounts=command.external_accounts
            )
        more = len(found) == command.limit
        return Result(
            data=r.RecordedCustomers(
                customers=found, next_after=found[-1].customer_id if more else None
            )
        )

    async def find_customers(self, _: Principal, command: r.FindCustomers, __: float) -> Result:
        async with self._database.snapshot() as connection:
            found = await self._customers.by_ids(
                connection, _ids(command.ids), external_accounts=command.external_accounts
            )
        return Result(data=r.RecordedCustomers(customers=found, next_after=None))

    async def page_external_accounts(self, _: Principal, command: r.PageAfter, __: float) -> Result:
        async with self._database.transaction() as connection:
            found = await self._external_accounts.page(connection, command.after, command.limit)
        more = len(found) == command.limit
        return Result(
            data=r.RecordedExternalAccounts(
                external_accounts=found,
                next_after=found[-1].external_account_id if more else None,
            )
        )

    async def find_external_accounts(self, _: Principal, command: r.FindByIds, __: float) -> Result:
        async with self._database.transaction() as connection:
            found = await self._external_accounts.by_ids(connection, command.ids)
        return Result(data=r.RecordedExternalAccounts(external_accounts=found, next_after=None))

    async def find_holders(self, _: Principal, command: r.FindHolders, __: float) -> Result:
        async with self._database.transaction() as connection:
            found = await holders.by_record_ids(connection, command.ids)
        return Result(data=r.Holders(holders=found))

    async def page_answers(self, _: Principal, command: r.PageAfter, __: float) -> Result:
        after = parse_id(command.after) if command.after else None
        async with self._database.transaction() as connection:
            answers, last = await page_of_answers(connection, after, command.limit)
        return Result(data=r.AnsweredCommands(answers=answers, next_after=last))

    async def find_answers(self, _: Principal, command: r.FindByIds, __: float) -> Result:
        async with self._database.transaction() as connection:
            answers = await answers_by_ids(connection, _ids(command.ids))
        return Result(data=r.AnsweredCommands(answers=answers, next_after=None))


def _ids(texts: Sequence[str]) -> list[UUID]:
    return [parsed for text in texts if (parsed := parse_id(text)) is not None]
