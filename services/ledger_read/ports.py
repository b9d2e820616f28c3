"""What the handlers need: onboarding, which knows who owns what, and the financial provider in two parts.

Deadlines are Unix seconds.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from libs.contracts.accounts import (
    Account,
    AccountSummary,
    Balance,
    ExternalAccount,
    LinkedExternalAccount,
)
from libs.contracts.ach import AchRequest, ListAchRequests
from libs.contracts.deposit_locations import DepositLocation, ListDepositLocations
from libs.contracts.ownership import AccountHolder, CustomerOwner
from libs.contracts.principal import Principal
from libs.contracts.settlement import ListSettlementCalculations, SettlementCalculation
from libs.contracts.statements import ListStatements, Statement
from libs.contracts.transactions import ListTransactions, Transaction
from libs.providers.feed_entries import Fetch
from services.ledger_read.models import (
    AccountHeading,
    FeedEntry,
    ListedPostings,
    Page,
    WaitingEntry,
)


class Ownership(Protocol):
    """Who owns what. Every method raises Unavailable when onboarding cannot be asked: never NotFound for that.

    Onboarding limits how many queries of one tenant it answers at a time. Where a method's answer is of any tenant,
    `principal` is the caller that needs it, whose share it counts for; of what the feed needs it is SERVICE.
    """

    async def require_account(self, principal: Principal, account_id: str, deadline: float) -> None:
        """Return when the account is one of the principal's. Raises NotFound when it is not, or does not exist."""
        ...

    async def account_ids(self, principal: Principal, deadline: float) -> list[str]:
        """All accounts of the principal's tenant, or of its customer when it is bound to one."""
        ...

    async def customer(
        self, principal: Principal, customer_id: str, deadline: float
    ) -> CustomerOwner:
        """A customer of any tenant. Raises NotFound."""
        ...

    async def holders(
        self, principal: Principal, account_ids: Sequence[str], deadline: float
    ) -> dict[str, AccountHolder]:
        """The holder of each account, of any tenant. Accounts that onboarding does not own are left out."""
        ...

    async def external_accounts(
        self, principal: Principal, customer_id: str, deadline: float
    ) -> list[LinkedExternalAccount]:
        """The linked ones of a customer of any tenant, the primary first, then the newest first."""
        ...

    async def tenant_of(self, customer_id: str, deadline: float) -> str:
        """The tenant that onboarded the customer. Raises NotFound."""
        ...


class Financial(Protocol):
    """The financial provider.

    Every method raises ProviderTimeout, Unavailable, and ProviderError for an answer that cannot be used. Not knowing
    an account is such an answer, since only accounts are asked for that onboarding says were opened.

    `principal`: see `Ownership`, which is asked where the provider does not know the owners of accounts.
    """

    async def account(self, principal: Principal, account_id: str, deadline: float) -> Account: ...

    async def accounts(
        self, principal: Principal, account_ids: Sequence[str], deadline: float
    ) -> list[Account]:
        """All of them, the newest first: by the provider's time of opening, and by id where it tells none."""
        ...

    async def summaries(self, account_ids: Sequence[str], deadline: float) -> list[AccountSummary]:
        """As `accounts`, without what costs the provider further requests."""
        ...

    async def balance(self, account_id: str, deadline: float) -> Balance: ...

    async def external_account(
        self, principal: Principal, account_id: str, deadline: float
    ) -> ExternalAccount:
        """The primary one of the account's customer. Raises NotFound when there is none."""
        ...

    async def external_accounts(
        self, principal: Principal, customer_id: str, deadline: float
    ) -> list[LinkedExternalAccount]:
        """All of the customer's, the primary first, then the newest first."""
        ...


class LedgerBesidePostings(Protocol):
    """What is in an account's ledger at the financial provider beside its transactions; raises as `Financial` does.

    Filters and pages of the commands are the provider's work. Lists are newest first, deposit locations by their ids.
    """

    async def deposit_locations(
        self, command: ListDepositLocations, deadline: float
    ) -> Page[DepositLocation]:
        """Empty and without a day when there is no such load."""
        ...

    async def ach_requests(self, command: ListAchRequests, deadline: float) -> list[AchRequest]: ...

    async def statements(self, command: ListStatements, deadline: float) -> list[Statement]: ...

    async def settlement_calculations(
        self, command: ListSettlementCalculations, deadline: float
    ) -> list[SettlementCalculation] | None:
        """None when the account has no reserve account."""
        ...


class Ledger(LedgerBesidePostings, Protocol):
    async def transactions(
        self, command: ListTransactions, deadline: float
    ) -> Page[Transaction]: ...


class CursorRefused(Exception):
    """The provider does not take a cursor that it gave out."""


class PostingSource(Protocol):
    """A provider's list of an account's postings that has cursors; raises as `Financial` does."""

    async def heading(self, account_id: str, deadline: float) -> AccountHeading: ...

    async def page(self, account_id: str, cursor: str | None, deadline: float) -> ListedPostings:
        """The postings from the cursor on, in the order in which they were posted, the newest first.

        Args:
            cursor: None for the newest ones; else the `next_cursor` of a page, which may have been given out long ago.

        Raises:
            CursorRefused
        """
        ...


ReadAgain = Callable[[WaitingEntry, AccountHolder, float], Awaitable[FeedEntry]]
"""(entry, the owner of its account, deadline) -> the entry as it is now. Raises as `Fetch`, or what kept it from being
read.
"""


@dataclass(frozen=True, slots=True)
class FinancialRole:
    """The adapters of the financial provider.

    Args:
        read_again: None where no entry waits, since the provider's entries name their customers.
    """

    accounts: Financial
    ledger: Ledger
    feed: Fetch[FeedEntry]
    read_again: ReadAgain | None = None


@dataclass(frozen=True, slots=True)
class Providers:
    financial: FinancialRole


class Adapters(Protocol):
    """One company's adapters."""

    def financial(self) -> FinancialRole: ...
