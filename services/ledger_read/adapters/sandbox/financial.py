"""Reading accounts, balances and external accounts over the financial provider's API."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Sequence

import structlog

from libs.contracts.accounts import (
    Account,
    AccountSummary,
    Balance,
    ExternalAccount,
    LinkedExternalAccount,
)
from libs.contracts.errors import NotFound, ProviderError
from libs.contracts.principal import Principal
from libs.gathering import gather_or_cancel
from libs.providers.sandbox.http import ProviderClient, segment
from services.ledger_read.adapters.refused_reads import NotKnown, lost_accounts
from services.ledger_read.adapters.sandbox.financial_answers import (
    AccountAnswer,
    AccountsAnswer,
    BalanceAnswer,
    ExternalAccountAnswer,
    LinkedExternalAccountsAnswer,
)
from services.ledger_read.adapters.sandbox.paging import CursorT, every_page
from services.ledger_read.adapters.sandbox.reading import Params, Reader

ACCOUNTS_AT_ONCE = 100
"""Ids in one request at most; the provider's limit."""
REQUESTS_AT_ONCE = 4
"""Requests for one list under way at most."""
CUSTOMER_PAGE = 100
"""Rows asked for at once of a list of a customer's."""


class SandboxFinancial:
    """See `ports.Financial`."""

    def __init__(self, client: ProviderClient) -> None:
        self._reader = Reader(client)
        self._log = structlog.get_logger("financial")

    async def balance(self, account_id: str, deadline: float) -> Balance:
        path = f"/accounts/{segment(account_id)}/balance"
        try:
            answer = await self._reader.read("get_balance", path, BalanceAnswer, deadline)
        except NotKnown:
            raise lost_accounts([account_id]) from None
        if answer.account_id != account_id:
            raise lost_accounts([account_id])
        return answer.to_balance()

    async def account(self, principal: Principal, account_id: str, deadline: float) -> Account:
        return await self._account(account_id, deadline)

    async def _account(self, account_id: str, deadline: float) -> Account:
        path = f"/accounts/{segment(account_id)}"
        try:
            answer = await self._reader.read("get_account", path, AccountAnswer, deadline)
        except NotKnown:
            raise lost_accounts([account_id]) from None
        if answer.account_id != account_id:
            raise lost_accounts([account_id])
        return answer.to_account()

    async def accounts(
        self, principal: Principal, account_ids: Sequence[str], deadline: float
    ) -> list[Account]:
        return await self._accounts(account_ids, deadline)

    async def _accounts(self, account_ids: Sequence[str], deadline: float) -> list[Account]:
        """By id: the sandbox tells no time of opening, and its ids grow with it."""
        newest_first = sorted(account_ids, reverse=True)
        under_way = asyncio.Semaphore(REQUESTS_AT_ONCE)

        async def read(chunk: Sequence[str]) -> list[Account]:
            async with under_way:
                return await self._chunk(chunk, deadline)

        chunks = (
            newest_first[start : start + ACCOUNTS_AT_ONCE]
            for start in range(0, len(newest_first), ACCOUNTS_AT_ONCE)
        )
        found = await gather_or_cancel(map(read, chunks), name="accounts")
        return list(itertools.chain.from_iterable(found))

    async def summaries(self, account_ids: Sequence[str], deadline: float) -> list[AccountSummary]:
        return [
            AccountSummary(**{name: getattr(account, name) for name in AccountSummary.model_fields})
            for account in await self._accounts(account_ids, deadline)
        ]

    async def _chunk(self, account_ids: Sequence[str], deadline: float) -> list[Account]:
        params = [("account_id", account_id) for account_id in account_ids]
        try:
            answer = await self._reader.read(
                "list_accounts", "/accounts", AccountsAnswer, deadline, params
            )
        except NotKnown:
            raise lost_accounts(account_ids) from None
        found = {account.account_id: account for account in answer.accounts}
        lost = [account_id for account_id in account_ids if account_id not in found]
        if lost:
            raise lost_accounts(lost)
        return [found[account_id].to_account() for account_id in account_ids]

    async def external_account(
        self, principal: Principal, account_id: str, deadline: float
    ) -> ExternalAccount:
        path = f"/accounts/{segment(account_id)}/external-account"
        try:
            answer = await self._reader.read(
                "get_external_account", path, ExternalAccountAnswer, deadline
            )
        except NotKnown:
            # Raises when it is the account that is missing.
            await self._account(account_id, deadline)
            raise NotFound("No external account is linked to this account.") from None
        return answer.to_external_account()

    async def external_accounts(
        self, principal: Principal, customer_id: str, deadline: float
    ) -> list[LinkedExternalAccount]:
        pages = await self._list_of_customer(
            "list_external_accounts",
            "/external-accounts",
            LinkedExternalAccountsAnswer,
            customer_id,
            deadline,
        )
        return [row.to_linked() for page in pages for row in page.rows]

    async def _list_of_customer(
        self, operation: str, path: str, shape: type[CursorT], customer_id: str, deadline: float
    ) -> list[CursorT]:
        """The pages of a list of the customer's, to its end.

        Raises:
            ProviderError: also when the provider does not know the customer.
        """

        async def ask(params: Params) -> CursorT:
            try:
                return await self._reader.read(operation, path, shape, deadline, params)
            except NotKnown:
                self._log.error("customer_unknown_to_provider", customer_id=customer_id)
                raise ProviderError from None

        params = [("customer_id", customer_id), ("limit", str(CUSTOMER_PAGE))]
        return await every_page(operation, ask, params)
