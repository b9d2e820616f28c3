"""Reading transactions, statements, ACH requests, deposit locations and settlement over the financial provider's API.

Filters and pages are the provider's work: nothing is read here that the caller did not ask for.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date

from libs.contracts.ach import AchRequest, ListAchRequests
from libs.contracts.deposit_locations import DepositLocation, ListDepositLocations
from libs.contracts.settlement import ListSettlementCalculations, SettlementCalculation
from libs.contracts.statements import ListStatements, Statement
from libs.contracts.transactions import ListTransactions, Transaction
from libs.providers.sandbox.http import ProviderClient, segment
from services.ledger_read.adapters.refused_reads import NotKnown, lost_accounts
from services.ledger_read.adapters.sandbox.financial_answers import AnswerT
from services.ledger_read.adapters.sandbox.ledger_answers import (
    AchRequestsAnswer,
    DepositLocationsAnswer,
    SettlementCalculationsAnswer,
    StatementsAnswer,
    TransactionsAnswer,
)
from services.ledger_read.adapters.sandbox.paging import (
    CursorT,
    broken_pages,
    every_page,
    window,
)
from services.ledger_read.adapters.sandbox.reading import Params, Reader
from services.ledger_read.models import Page

CURSOR_PAGE = 200
"""Rows asked for at once of a list that is read to its end."""


class SandboxLedger:
    """See `ports.Ledger`."""

    def __init__(self, client: ProviderClient) -> None:
        self._reader = Reader(client)

    async def transactions(self, command: ListTransactions, deadline: float) -> Page[Transaction]:
        operation = "list_transactions"
        filters = _given(
            transaction_id=command.transaction_id, start=command.start_date, end=command.end_date
        )

        async def ask(page: int, limit: int) -> TransactionsAnswer:
            answer = await self._read(
                operation,
                command.account_id,
                "transactions",
                TransactionsAnswer,
                deadline,
                [*filters, ("page", str(page)), ("limit", str(limit))],
            )
            _expect_account(operation, command.account_id, [r.account_id for r in answer.rows])
            return answer

        found = await window(
            operation,
            ask,
            lambda row: row.transaction_id,
            page=command.page,
            limit=command.limit,
        )
        return Page([row.to_transaction() for row in found.rows], found.total)

    async def deposit_locations(
        self, command: ListDepositLocations, deadline: float
    ) -> Page[DepositLocation]:
        operation = "list_deposit_locations"
        loads: list[date | None] = []

        async def ask(page: int, limit: int) -> DepositLocationsAnswer:
            # Further pages are of the load of the first, though another one may be the latest by now.
            load = next((day for day in loads if day is not None), command.load_date)
            answer = await self._read(
                operation,
                command.account_id,
                "deposit-locations",
                DepositLocationsAnswer,
                deadline,
                [*_given(load_date=load), ("page", str(page)), ("limit", str(limit))],
            )
            _expect_account(operation, command.account_id, [answer.account_id])
            of_another_load = load is not None and answer.as_of_date not in (load, None)
            if of_another_load or (answer.as_of_date is None and answer.total > 0):
                raise broken_pages(operation, "of another load")
            loads.append(answer.as_of_date)
            return answer

        found = await window(
            operation, ask, lambda row: row.location_id, page=command.page, limit=command.limit
        )
        if len(set(loads)) > 1:
            raise broken_pages(operation, "of several loads")
        return Page([row.to_deposit_location() for row in found.rows], found.total, loads[0])

    async def ach_requests(self, command: ListAchRequests, deadline: float) -> list[AchRequest]:
        operation = "list_ach"
        pages = await self._all(
            operation,
            command.account_id,
            "ach",
            AchRequestsAnswer,
            deadline,
            _given(reference_id=command.reference_id),
        )
        rows = [row for page in pages for row in page.rows]
        _expect_account(operation, command.account_id, [r.originating_account_id for r in rows])
        return [row.to_ach_request() for row in rows]

    async def statements(self, command: ListStatements, deadline: float) -> list[Statement]:
        operation = "list_statements"
        pages = await self._all(
            operation,
            command.account_id,
            "statements",
            StatementsAnswer,
            deadline,
            _given(
                statement_id=command.statement_id, start=command.start_date, end=command.end_date
            ),
        )
        rows = [row for page in pages for row in page.rows]
        _expect_account(operation, command.account_id, [row.account_id for row in rows])
        return [row.to_statement() for row in rows]

    async def settlement_calculations(
        self, command: ListSettlementCalculations, deadline: float
    ) -> list[SettlementCalculation] | None:
        operation = "list_settlement_calculations"
        pages = await self._all(
            operation,
            command.account_id,
            "settlement-calculations",
            SettlementCalculationsAnswer,
            deadline,
            _given(**{"from": command.settlement_date}),
            {"Source": command.source} if command.source else None,
        )
        _expect_account(operation, command.account_id, [page.account_id for page in pages])
        reserve = pages[0].reserve_account_number
        if any(page.reserve_account_number != reserve for page in pages):
            raise broken_pages(operation, "of several reserve accounts")
        if reserve is None:
            return None
        return [row.to_calculation(reserve) for page in pages for row in page.rows]

    async def _all(
        self,
        operation: str,
        account_id: str,
        what: str,
        shape: type[CursorT],
        deadline: float,
        filters: Params,
        headers: Mapping[str, str] | None = None,
    ) -> list[CursorT]:
        async def ask(params: Params) -> CursorT:
            return await self._read(operation, account_id, what, shape, deadline, params, headers)

        return await every_page(operation, ask, [*filters, ("limit", str(CURSOR_PAGE))])

    async def _read(
        self,
        operation: str,
        account_id: str,
        what: str,
        shape: type[AnswerT],
        deadline: float,
        params: Params,
        headers: Mapping[str, str] | None = None,
    ) -> AnswerT:
        path = f"/accounts/{segment(account_id)}/{what}"
        try:
            return await self._reader.read(operation, path, shape, deadline, params, headers)
        except NotKnown:
            raise lost_accounts([account_id]) from None


def _given(**filters: str | date | None) -> Params:
    """The filters that were given, as parameters."""
    return [(name, str(value)) for name, value in filters.items() if value is not None]


def _expect_account(operation: str, account_id: str, found: list[str]) -> None:
    """Raises ProviderError when a row is of another account: it must not be shown."""
    if any(other != account_id for other in found):
        raise broken_pages(operation, "of another account")
