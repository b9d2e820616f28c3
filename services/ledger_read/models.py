"""Pages of lists, postings as they are mirrored, and entries of the provider's feed in the terms of the event table."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from typing import Generic, TypeVar
from uuid import UUID

from libs.contracts.events import EventType
from libs.contracts.model import Model
from libs.contracts.transactions import Transaction, TransactionType

RowT = TypeVar("RowT")


@dataclass(frozen=True, slots=True)
class Page(Generic[RowT]):
    """One page of a list of `total` rows. `as_of_date`: the day of the load that they are of, where there are loads."""

    rows: list[RowT]
    total: int
    as_of_date: date | None = None


@dataclass(frozen=True, slots=True)
class ReportedEvent:
    """An event of a resource of one of the bank's customers.

    Args:
        data: what subscribers may read.
        state: the resource's state that the event reports, where the provider may report one several times: the event
            is left out when the last one was of the same state.
    """

    event_type: EventType
    customer_id: str
    resource_id: str
    occurred_at: datetime
    data: Model
    state: str | None = None


@dataclass(frozen=True, slots=True)
class WaitingEntry:
    """An entry about an account that onboarding does not own yet, although it belongs to a customer of ours.

    Args:
        position: of the entry in the feed.
        type, object_id: the provider's, by which the entry is read again.
        customer_id: ours, as the provider has it.
    """

    account_id: str
    customer_id: str
    position: int
    event_id: str
    type: str
    object_id: str
    occurred_at: datetime


@dataclass(frozen=True, slots=True)
class FeedEntry:
    """One entry of the feed.

    `event` is None when the entry waits, or when there is nothing to report: a type or a state that is not reported, an
    object that the provider no longer has, or an account of others.

    Args:
        waiting: the entry becomes an event later.
        earlier: of states through which the resource passed before that of `event`, each with its state, in their
            order: those after the state that was reported last are reported before `event`.
    """

    position: int
    type: str
    event: ReportedEvent | None
    provider_cursor: str | None = None
    event_id: str | None = None
    earlier: tuple[ReportedEvent, ...] = ()
    waiting: WaitingEntry | None = None


@dataclass(frozen=True, slots=True)
class Posting:
    """What was posted to an account; it never changes. `amount` is never negative.

    Args:
        provider_id: the provider's id of it.
        transaction_id: the id under which callers know it: the provider's own or ours, one for each `provider_id`.
        tx_uuid: as in `libs.contracts.transactions`.
    """

    provider_id: str
    transaction_id: str
    tx_uuid: UUID
    type: TransactionType
    settled_at: datetime
    amount: Decimal
    is_debit: bool
    counterparty_name: str | None
    counterparty_id: str | None

    def to_transaction(self, heading: AccountHeading) -> Transaction:
        return Transaction(
            transaction_id=self.transaction_id,
            account_number=heading.account_number,
            account_group=heading.account_group,
            type=self.type,
            settled_at=self.settled_at,
            counterparty_name=self.counterparty_name,
            counterparty_id=self.counterparty_id,
            amount=self.amount,
            debit_credit_flag=self.is_debit,
            tx_uuid=str(self.tx_uuid),
        )


@dataclass(frozen=True, slots=True)
class ListedPostings:
    """A page of the provider's list of an account's postings, the last one posted first.

    Args:
        ids: the provider's, of all of them.
        next_cursor: None at the end of the account's history.
        read: (ids of this page, deadline) -> their postings, in the page's order. Other objects of the provider, such
            as the wire of a posting, are read for these alone. Raises as `PostingSource.page`, but for CursorRefused.
    """

    ids: Sequence[str]
    next_cursor: str | None
    read: Callable[[Collection[str], float], Awaitable[list[Posting]]]


@dataclass(frozen=True, slots=True)
class PostingPage:
    """One or more pages of an account's postings, as they are stored.

    Args:
        postings: the last one posted first; those that are mirrored may be left out.
        oldest_id: the provider's id of the last posting of the pages, mirrored or not; None when they have none.
        next_cursor: None at the end of the account's history.
    """

    postings: Sequence[Posting]
    oldest_id: str | None
    next_cursor: str | None


@dataclass(frozen=True, slots=True)
class AccountHeading:
    """What every transaction of an account repeats."""

    account_number: str
    account_group: str


@dataclass(frozen=True, slots=True)
class LoadedLocation:
    """What a bank of the program holds of an account's swept deposits."""

    location_id: int
    name: str
    city_and_state: str
    balance: Decimal


@dataclass(frozen=True, slots=True)
class DepositLoad:
    """Where an account's swept deposits are, as of a day."""

    account_id: str
    load_date: date
    locations: list[LoadedLocation]
