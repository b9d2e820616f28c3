"""Accounts, balances and external accounts at Increase.

Whose an account is, what its customer is called and which external account is primary are ours: onboarding has them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any, Generic, TypeVar

from libs.contracts.accounts import (
    Account,
    AccountSummary,
    Balance,
    ExternalAccount,
    LinkedExternalAccount,
    Money,
)
from libs.contracts.bank_days import BANK_ZONE, today_at_the_bank
from libs.contracts.errors import NotFound, ProviderError
from libs.contracts.ownership import AccountHolder
from libs.contracts.principal import Principal
from libs.gathering import gather_or_cancel
from libs.providers.errors import AttemptFailed, Failure
from libs.providers.increase.accounts import Account as IncreaseAccount
from libs.providers.increase.accounts import retrieve_account, status_of
from libs.providers.increase.external_accounts import retrieve_bank_details
from libs.providers.increase.money import amount_of
from services.ledger_read.adapters.increase.numbers import AccountNumbers
from services.ledger_read.adapters.increase.postings import GROUP
from services.ledger_read.adapters.increase.reading import Reader
from services.ledger_read.adapters.increase.transactions import (
    INTEREST,
    is_earned_by_its_account,
    list_transactions,
)
from services.ledger_read.adapters.increase.whole_lists import Listed, WholeLists
from services.ledger_read.adapters.refused_reads import NotKnown, lost_accounts
from services.ledger_read.ports import Ownership

ACCOUNTS_AT_ONCE = 32
MOST_READ_SINGLY = 1_000
"""Of one list: two requests each are what Increase's rate limit lets through before a caller's deadline."""
TOO_MANY_ACCOUNTS = (
    f"More than {MOST_READ_SINGLY:,} accounts cannot be listed at once at this bank."
    " Get each by its id, which is shown with its customer."
)
PERCENT = Decimal(100)
CENT = Decimal("0.01")


SummaryT = TypeVar("SummaryT", bound=AccountSummary)


@dataclass(frozen=True, slots=True)
class _Dated(Generic[SummaryT]):
    created_at: datetime
    account: SummaryT


class IncreaseFinancial:
    """See `ports.Financial`."""

    def __init__(self, reader: Reader, numbers: AccountNumbers, ownership: Ownership) -> None:
        self._reader = reader
        self._numbers = numbers
        self._ownership = ownership
        self._lists = WholeLists(reader, numbers)

    async def balance(self, account_id: str, deadline: float) -> Balance:
        number = await self._numbers.number(account_id, deadline)
        found = await self._reader.of_account(
            account_id, "get_balance", lambda sdk: sdk.accounts.balance(account_id), deadline
        )
        if found.account_id != account_id:
            raise lost_accounts([account_id])

        def money(cents: int) -> Money:
            return Money(amount=amount_of(cents), currency="USD")

        return Balance(
            account_id=account_id,
            account_number=number,
            available_balance=money(found.available_balance),
            held_balance=money(found.current_balance - found.available_balance),
            total_balance=money(found.current_balance),
            system_timestamp=datetime.now(UTC),
        )

    async def account(self, principal: Principal, account_id: str, deadline: float) -> Account:
        [account] = await self.accounts(principal, [account_id], deadline)
        return account

    async def accounts(
        self, principal: Principal, account_ids: Sequence[str], deadline: float
    ) -> list[Account]:
        holders = await self._ownership.holders(principal, account_ids, deadline)
        lost = [account_id for account_id in account_ids if account_id not in holders]
        if lost:
            raise lost_accounts(lost)
        listed = await self._listed(account_ids, deadline)

        async def read(account_id: str) -> _Dated[Account]:
            known = listed.account(account_id)
            found, summary = await self._found(account_id, deadline, known)
            cents = listed.interest_of(account_id)
            if cents is None:
                cents = await self._interest(account_id, deadline)
            account = _account(found, summary, holders[account_id], amount_of(cents))
            return _Dated(found.created_at, account)

        return await _newest_first(account_ids, read)

    async def summaries(self, account_ids: Sequence[str], deadline: float) -> list[AccountSummary]:
        async def read(account_id: str) -> _Dated[AccountSummary]:
            found, summary = await self._found(account_id, deadline)
            return _Dated(found.created_at, summary)

        return await _newest_first(account_ids, read)

    async def external_account(
        self, principal: Principal, account_id: str, deadline: float
    ) -> ExternalAccount:
        holders = await self._ownership.holders(principal, [account_id], deadline)
        holder = holders.get(account_id)
        if holder is None:
            raise lost_accounts([account_id])
        linked = await self._ownership.external_accounts(principal, holder.customer_id, deadline)
        if not linked or not linked[0].primary:
            raise NotFound("No external account is linked to this account.")
        primary = linked[0]
        try:
            found = await self._reader.read(
                "get_external_account",
                lambda sdk: retrieve_bank_details(sdk, primary.external_account_id),
                deadline,
            )
        except NotKnown:
            raise lost_accounts([account_id]) from None
        if found.id != primary.external_account_id:
            raise lost_accounts([account_id])
        return ExternalAccount(
            external_account_id=primary.external_account_id,
            external_account_number=found.account_number,
            external_account_title=primary.name_on_account,
            external_institution_aba=found.routing_number,
            external_institution_name=primary.bank_name,
        )

    async def external_accounts(
        self, principal: Principal, customer_id: str, deadline: float
    ) -> list[LinkedExternalAccount]:
        return await self._ownership.external_accounts(principal, customer_id, deadline)

    async def _listed(self, account_ids: Sequence[str], deadline: float) -> Listed:
        are_too_many = len(account_ids) > MOST_READ_SINGLY
        try:
            listed = await self._lists.read(account_ids, deadline)
        except ProviderError as error:
            if not _is_unreadable(error):
                raise
            # An object of others may be of a kind that this release does not know.
            listed = Listed()
        are_numbers_known = self._numbers.how_many_unknown(account_ids) <= MOST_READ_SINGLY
        if are_too_many and not (listed.is_whole and are_numbers_known):
            raise ProviderError(TOO_MANY_ACCOUNTS)
        return listed

    async def _found(
        self, account_id: str, deadline: float, known: IncreaseAccount | None = None
    ) -> tuple[IncreaseAccount, AccountSummary]:
        """The account, which is read unless it is known."""
        number = await self._numbers.number(account_id, deadline)
        found = known
        if found is None:
            found = await self._reader.of_account(
                account_id, "get_account", lambda sdk: retrieve_account(sdk, account_id), deadline
            )
            if found.id != account_id:
                raise lost_accounts([account_id])
        return found, AccountSummary(
            id=account_id, account_number=number, account_group=GROUP, account_title=found.name
        )

    async def _interest(self, account_id: str, deadline: float) -> int:
        """In cents, of this year at the bank: a few postings, found without the account's history."""
        year = today_at_the_bank().year
        since = datetime(year, 1, 1, tzinfo=BANK_ZONE)
        cents, cursor = 0, None
        while True:
            page = await list_transactions(
                self._reader, account_id, cursor, deadline, categories=[INTEREST], since=since
            )
            cents += sum(row.amount for row in page.rows if is_earned_by_its_account(row, year))
            if page.next_cursor is None:
                return cents
            if page.next_cursor == cursor:
                raise self._reader.broken("list_transactions", "without end")
            cursor = page.next_cursor


def _account(
    found: IncreaseAccount, summary: AccountSummary, holder: AccountHolder, interest: Decimal
) -> Account:
    rate = Decimal(found.interest_rate) if interest > 0 else Decimal(0)
    return Account(
        **dict(summary),
        name=holder.business_name,
        dba_name=holder.dba,
        status=status_of(found),
        interest_earned_year_to_date=interest,
        annual_percentage_yield_earned=(rate * PERCENT).quantize(CENT),
        is_restricted=False,
        close_date=found.closed_at,
    )


def _is_unreadable(error: ProviderError) -> bool:
    """Whether Increase has answered, and the answer cannot be read: it will be the same again. What a proxy answered
    in its place may not be.
    """
    cause = error.__cause__
    return (
        isinstance(cause, AttemptFailed)
        and cause.failure is Failure.UNREADABLE
        and (cause.status is None or cause.status < 300)
    )


async def _newest_first(
    account_ids: Sequence[str], read: Callable[[str], Coroutine[Any, Any, _Dated[SummaryT]]]
) -> list[SummaryT]:
    under_way = asyncio.Semaphore(ACCOUNTS_AT_ONCE)

    async def read_in_turn(account_id: str) -> _Dated[SummaryT]:
        async with under_way:
            return await read(account_id)

    found = await gather_or_cancel(map(read_in_turn, account_ids), name="accounts")
    found.sort(key=lambda one: (one.created_at, one.account.id), reverse=True)
    return [one.account for one in found]
