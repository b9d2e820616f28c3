"""Queries of an account's statements, ACH requests, transactions, deposit locations and settlement calculations:
ownership is checked first, then the provider is asked.
"""

from __future__ import annotations

from collections.abc import Mapping

from libs.contracts import ledger_read_operations as operations
from libs.contracts.ach import ListAchRequests
from libs.contracts.deposit_locations import ListDepositLocations
from libs.contracts.operation import OffsetInfo, PageInfo
from libs.contracts.principal import Principal
from libs.contracts.result import Result
from libs.contracts.settlement import ListSettlementCalculations
from libs.contracts.statements import ListStatements
from libs.contracts.transactions import ListTransactions
from libs.handling.queries import QueryHandler
from services.ledger_read.ports import Ledger, Ownership


class LedgerQueries:
    """Deadlines are Unix seconds."""

    def __init__(self, ownership: Ownership, ledger: Ledger) -> None:
        self._ownership = ownership
        self._ledger = ledger

    def by_operation(self) -> Mapping[str, QueryHandler]:
        return {
            operations.LIST_STATEMENTS.name: self.list_statements,
            operations.LIST_ACH_REQUESTS.name: self.list_ach_requests,
            operations.LIST_TRANSACTIONS.name: self.list_transactions,
            operations.LIST_DEPOSIT_LOCATIONS.name: self.list_deposit_locations,
            operations.LIST_SETTLEMENT_CALCULATIONS.name: self.list_settlement_calculations,
        }

    async def list_statements(
        self, principal: Principal, command: ListStatements, deadline: float
    ) -> Result:
        await self._ownership.require_account(principal, command.account_id, deadline)
        return Result(await self._ledger.statements(command, deadline))

    async def list_ach_requests(
        self, principal: Principal, command: ListAchRequests, deadline: float
    ) -> Result:
        await self._ownership.require_account(principal, command.account_id, deadline)
        return Result(await self._ledger.ach_requests(command, deadline))

    async def list_transactions(
        self, principal: Principal, command: ListTransactions, deadline: float
    ) -> Result:
        await self._ownership.require_account(principal, command.account_id, deadline)
        found = await self._ledger.transactions(command, deadline)
        return Result(
            found.rows, PageInfo(limit=command.limit, total=found.total, page=command.page)
        )

    async def list_deposit_locations(
        self, principal: Principal, command: ListDepositLocations, deadline: float
    ) -> Result:
        await self._ownership.require_account(principal, command.account_id, deadline)
        found = await self._ledger.deposit_locations(command, deadline)
        offset = (command.page - 1) * command.limit
        return Result(
            found.rows,
            OffsetInfo(limit=command.limit, total=found.total, offset=offset),
            found.as_of_date,
        )

    async def list_settlement_calculations(
        self, principal: Principal, command: ListSettlementCalculations, deadline: float
    ) -> Result:
        await self._ownership.require_account(principal, command.account_id, deadline)
        return Result(await self._ledger.settlement_calculations(command, deadline))
