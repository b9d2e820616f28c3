"""Reading accounts, balances and external accounts over the financial provider's API."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import structlog

from libs.contracts.accounts import Account, Balance, ExternalAccount, LinkedExternalAccount
from libs.contracts.errors import NotFound, ProviderError
from libs.providers.errors import ProviderRefusal
from libs.providers.http import ProviderClient, segment
from services.ledger_read.adapters.financial_answers import (
    AccountAnswer,
    AccountsAnswer,
    AnswerT,
    BalanceAnswer,
    ExternalAccountAnswer,
    LinkedExternalAccountsAnswer,
    read_answer,
)

ACCOUNTS_AT_ONCE = 100
"""Ids in one request at most; the provider's limit."""
REQUESTS_AT_ONCE = 4
"""Requests for one list under way at most."""
EXTERNAL_ACCOUNTS_PAGE = 100


class _NotKnown(Exception):
    """The provider answered 404."""


class FinancialProvider:
    """See `ports.Financial`."""

    def __init__(self, client: ProviderClient) -> None:
        self._client = client
        self._log = structlog.get_logger("financial")

    async def balance(self, account_id: str, deadline: float) -> Balance:
        path = f"/accounts/{segment(account_id)}/balance"
        try:
            answer = await self._read("get_balance", path, BalanceAnswer, deadline)
        except _NotKnown:
            raise self._lost([account_id]) from None
        if answer.account_id != account_id:
            raise self._lost([account_id])
        return answer.to_balance()

    async def account(self, account_id: str, deadline: float) -> Account:
        path = f"/accounts/{segment(account_id)}"
        try:
            answer = await self._read("get_account", path, AccountAnswer, deadline)
        except _NotKnown:
            raise self._lost([account_id]) from None
        if answer.account_id != account_id:
            raise self._lost([account_id])
        return answer.to_account()

    async def accounts(self, account_ids: Sequence[str], deadline: float) -> list[Account]:
        room = asyncio.Semaphore(REQUESTS_AT_ONCE)

        async def read(chunk: Sequence[str]) -> list[Account]:
            async with room:
                return await self._chunk(chunk, deadline)

        try:
            async with asyncio.TaskGroup() as group:
                tasks = [
                    group.create_task(read(account_ids[start : start + ACCOUNTS_AT_ONCE]))
                    for start in range(0, len(account_ids), ACCOUNTS_AT_ONCE)
                ]
        except ExceptionGroup as failures:
            # The first failure cancelled the others: it is the reason.
            raise failures.exceptions[0] from None
        return [account for task in tasks for account in task.result()]

    async def _chunk(self, account_ids: Sequence[str], deadline: float) -> list[Account]:
        params = [("account_id", account_id) for account_id in account_ids]
        try:
            answer = await self._read(
                "list_accounts", "/accounts", AccountsAnswer, deadline, params
            )
        except _NotKnown:
            raise self._lost(account_ids) from None
        found = {account.account_id: account for account in answer.accounts}
        lost = [account_id for account_id in account_ids if account_id not in found]
        if lost:
            raise self._lost(lost)
        return [found[account_id].to_account() for account_id in account_ids]

    async def external_account(self, account_id: str, deadline: float) -> ExternalAccount:
        path = f"/accounts/{segment(account_id)}/external-account"
        try:
            answer = await self._read("get_external_account", path, ExternalAccountAnswer, deadline)
        except _NotKnown:
            await self.account(
                account_id, deadline
            )  # raises when it is the account that is missing
            raise NotFound("No external account is linked to this account.") from None
        return answer.to_external_account()

    async def external_accounts(
        self, customer_id: str, deadline: float
    ) -> list[LinkedExternalAccount]:
        linked: list[LinkedExternalAccount] = []
        cursors: set[str] = set()
        params = [("customer_id", customer_id), ("limit", str(EXTERNAL_ACCOUNTS_PAGE))]
        page_params = params
        while True:
            try:
                page = await self._read(
                    "list_external_accounts",
                    "/external-accounts",
                    LinkedExternalAccountsAnswer,
                    deadline,
                    page_params,
                )
            except _NotKnown:
                self._log.error("customer_unknown_to_provider", customer_id=customer_id)
                raise ProviderError from None
            linked += [answer.to_linked() for answer in page.external_accounts]
            if page.next_cursor is None:
                return linked
            if page.next_cursor in cursors:
                self._log.error("provider_pages_in_a_circle", operation="list_external_accounts")
                raise ProviderError
            cursors.add(page.next_cursor)
            page_params = [*params, ("cursor", page.next_cursor)]

    async def _read(
        self,
        operation: str,
        path: str,
        shape: type[AnswerT],
        deadline: float,
        params: Sequence[tuple[str, str]] = (),
    ) -> AnswerT:
        try:
            answer = await self._client.read(operation, path, params, deadline=deadline)
        except ProviderRefusal as refusal:
            if refusal.status == 404:
                raise _NotKnown from refusal
            self._log.error(
                "provider_refused_a_read",
                operation=operation,
                status=refusal.status,
                code=refusal.code,
            )
            raise ProviderError from refusal
        return read_answer(operation, shape, answer)

    def _lost(self, account_ids: Sequence[str]) -> ProviderError:
        """Onboarding owns what the provider does not know: that must not hide an account, so it is an error."""
        self._log.error(
            "accounts_unknown_to_provider", account_ids=account_ids[:10], count=len(account_ids)
        )
        return ProviderError()
