"""Increase's events as entries of the financial feed. They are thin: each is read anew as the object is now.

What is reported is the object as it was at the event, where it changes: an account that is opened, and each state of an
ACH request.
"""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import UTC
from decimal import Decimal
from typing import Any

import structlog
from cachetools import LRUCache
from increase import AsyncIncrease

from libs.contracts.accounts import AccountEventData
from libs.contracts.ach import AchEventData, AchRequest
from libs.contracts.errors import BanksideError, ProviderError
from libs.contracts.events import EVENT_TYPES
from libs.contracts.exact_json import decode
from libs.contracts.ids import parse_made_id
from libs.contracts.masking import masked
from libs.contracts.model import Model
from libs.contracts.ownership import AccountHolder
from libs.contracts.principal import SERVICE
from libs.contracts.statements import StatementEventData
from libs.contracts.transactions import TransactionEventData
from libs.persistence.availability import is_away
from libs.providers.errors import AttemptFailed, Failure
from libs.providers.feed_entries import (
    FETCH_SECONDS,
    FeedCursor,
    Place,
    UndecodableEntry,
    decode_entries,
    faulty_entry,
    shown_type,
)
from libs.providers.increase.accounts import CLOSED, retrieve_account, status_of
from libs.providers.increase.events import Event, EventFeed, ListedEvent
from services.ledger_read.adapters.increase.accounts import IncreaseFinancial
from services.ledger_read.adapters.increase.ach_transfers import retrieve_ach_transfer
from services.ledger_read.adapters.increase.ledger import (
    as_created,
    passed_states,
    to_ach_request,
    to_period,
)
from services.ledger_read.adapters.increase.postings import IncreasePostings
from services.ledger_read.adapters.increase.reading import Reader
from services.ledger_read.adapters.increase.transactions import get_transaction
from services.ledger_read.adapters.refused_reads import NotKnown
from services.ledger_read.mirror.named import NamedPostings
from services.ledger_read.models import FeedEntry, ReportedEvent, WaitingEntry
from services.ledger_read.ports import Ownership
from services.ledger_read.waiting_entries import WaitingEntries

STRANGERS = 10_000
"""Accounts of others' entities that are kept in memory, so that account and entity are not read for each entry. They
are none of ours until onboarding owns them, as it does one that was made by hand.
"""
AS_OPENED = {
    "status": "open",
    "interest_earned_year_to_date": Decimal(0),
    "annual_percentage_yield_earned": Decimal(0),
    "close_date": None,
}
"""Of an account, which may have been closed since and have earned interest."""


@dataclasses.dataclass(frozen=True, slots=True)
class _Reported:
    """The account and the event that an Increase event stands for.

    Args:
        kind: the event's type of ours; None when the object is in a state that is not reported.
        resource: (the account's owner) -> the resource's id and the event's data. What they take from further objects
            is read then, so that no account of others needs it.
        state: as in `ReportedEvent`.
        passed: of an ACH request: the request as it was in each earlier state, oldest first.
    """

    account_id: str
    kind: str | None
    resource: Callable[[AccountHolder], Awaitable[tuple[str, Model]]]
    state: str | None = None
    passed: Sequence[AchRequest] = ()


class IncreaseFinancialFeed:
    def __init__(
        self,
        reader: Reader,
        financial: IncreaseFinancial,
        postings: IncreasePostings,
        named: NamedPostings,
        ownership: Ownership,
        waiting: WaitingEntries,
    ) -> None:
        self._reader = reader
        self._financial = financial
        self._postings = postings
        self._named = named
        self._ownership = ownership
        self._waiting = waiting
        self._strangers: LRUCache[str, bool] = LRUCache(STRANGERS)
        self._readers: Mapping[str, Callable[[Event, float], Awaitable[_Reported]]] = {
            "account.created": self._account_opened,
            "account.updated": self._account_updated,
            "transaction.created": self._transaction,
            "ach_transfer.created": self._ach_created,
            "ach_transfer.updated": self._ach_updated,
            "account_statement.created": self._statement,
        }
        self._events = EventFeed(reader.client, tuple(self._readers))
        self._log = structlog.get_logger("feed")

    async def fetch(self, after: FeedCursor, limit: int) -> list[FeedEntry]:
        """The next entries. One of an account that onboarding may be about to own waits: see `WaitingEntry`.

        Raises:
            ProviderTimeout, ProviderError, Unavailable: there is no usable answer.
            UndecodableEntry: the next event, or its object, is not of the shape that this release knows.
        """
        deadline = time.time() + FETCH_SECONDS
        listed = await self._events.fetch(after.provider_cursor, limit)
        events = decode_entries(
            listed, after.position, lambda item, place: (item.decoded(), place), _locate
        )
        entries: list[FeedEntry] = []
        waiting: dict[str, str] = {}
        for one, (event, place) in zip(listed, events, strict=False):  # events end at one at fault
            try:
                entries.append(await self._entry(event, place, waiting, deadline))
            except Exception as error:  # of any kind: an entry that cannot be read must show
                if entries:
                    break
                if _is_transient(error):
                    raise
                raise UndecodableEntry(faulty_entry(one.item, place, error)) from error
            if time.time() > deadline - FETCH_SECONDS / 2:
                break  # the rest is fetched anew, in a time of its own
        return entries

    async def read_again(
        self, waiting: WaitingEntry, holder: AccountHolder, deadline: float
    ) -> FeedEntry:
        """See `ports.ReadAgain`."""
        event = Event(waiting.event_id, waiting.type, waiting.object_id, waiting.occurred_at)
        entry = FeedEntry(waiting.position, waiting.type, None, event_id=waiting.event_id)
        reported = await self._read(event, deadline)
        return entry if reported is None else await _with_events(entry, event, reported, holder)

    async def _entry(
        self, event: Event, place: Place, waiting: dict[str, str], deadline: float
    ) -> FeedEntry:
        """The entry with its event, or as one that waits; with neither when there is nothing to report.

        Args:
            waiting: the customers of accounts of which an earlier entry of the page waits; the entry's is added.
        """
        entry = FeedEntry(
            place.position, event.category, None, place.provider_cursor, place.event_id
        )
        reported = await self._read(event, deadline)
        if reported is None:
            return entry
        account_id = reported.account_id
        # What comes after an entry that waits, waits as well: an account's events keep their order.
        customer_id = waiting.get(account_id) or await self._waiting.customer_of(account_id)
        if customer_id is None:
            holders = await self._ownership.holders(SERVICE, [account_id], deadline)
            holder = holders.get(account_id)
            if holder is not None:
                return await _with_events(entry, event, reported, holder)
            if account_id in self._strangers:
                return entry
            customer_id = await self._customer_at_increase(account_id, deadline)
            if customer_id is None:
                self._strangers[account_id] = True
                self._log.warning("feed_entry_of_unknown_account", account_id=account_id)
                return entry
        waiting[account_id] = customer_id
        return dataclasses.replace(
            entry,
            waiting=WaitingEntry(
                account_id=account_id,
                customer_id=customer_id,
                position=place.position,
                event_id=event.id,
                type=event.category,
                object_id=event.associated_object_id,
                occurred_at=event.created_at.astimezone(UTC),
            ),
        )

    async def _read(self, event: Event, deadline: float) -> _Reported | None:
        """None: there is nothing to report."""
        try:
            reported = await self._readers[event.category](event, deadline)
        except NotKnown:
            self._log.warning("feed_object_unknown", type=event.category)
            return None
        return None if reported.kind is None else reported

    async def _customer_at_increase(self, account_id: str, deadline: float) -> str | None:
        """The description of the account's entity, where it is an id of ours, as onboarding makes them."""
        account = await self._reader.read(
            "get_account", lambda sdk: retrieve_account(sdk, account_id), deadline
        )

        async def call(sdk: AsyncIncrease) -> Any:
            # Not as the SDK's model: an entity of others may be of a kind that it does not know.
            answer = await sdk.entities.with_raw_response.retrieve(account.entity_id)
            return decode(answer.http_response.content)

        match await self._reader.read("get_entity", call, deadline):
            case {"description": str(description)}:
                ours = parse_made_id(description)
                return None if ours is None else str(ours)
            case _:
                return None

    async def _account_opened(self, event: Event, deadline: float) -> _Reported:
        return self._account(event, "account.opened", deadline)

    async def _account_updated(self, event: Event, deadline: float) -> _Reported:
        account_id = event.associated_object_id
        account = await self._reader.read(
            "get_account", lambda sdk: retrieve_account(sdk, account_id), deadline
        )
        is_closed = status_of(account) == CLOSED
        return self._account(event, "account.closed" if is_closed else None, deadline)

    def _account(self, event: Event, kind: str | None, deadline: float) -> _Reported:
        account_id = event.associated_object_id

        async def resource(holder: AccountHolder) -> tuple[str, Model]:
            account = await self._financial.account(SERVICE, account_id, deadline)
            shown = dict(account) | {"account_number": masked(account.account_number)}
            if kind == "account.opened":
                shown |= AS_OPENED
            return account_id, AccountEventData(**shown, customer_id=holder.customer_id)

        return _Reported(account_id, kind, resource, state=kind)

    async def _transaction(self, event: Event, deadline: float) -> _Reported:
        row = await get_transaction(self._reader, event.associated_object_id, deadline)

        async def resource(holder: AccountHolder) -> tuple[str, Model]:
            posting = await self._postings.posting(row, deadline)
            await self._named.add(row.account_id, posting)
            heading = await self._postings.heading(row.account_id, deadline)
            shown = dict(posting.to_transaction(heading))
            shown["account_number"] = masked(heading.account_number)
            return posting.transaction_id, TransactionEventData(
                **shown, account_id=row.account_id, customer_id=holder.customer_id
            )

        return _Reported(row.account_id, "transaction.created", resource)

    async def _ach_created(self, event: Event, deadline: float) -> _Reported:
        return await self._ach(event, deadline, is_new=True)

    async def _ach_updated(self, event: Event, deadline: float) -> _Reported:
        return await self._ach(event, deadline, is_new=False)

    async def _ach(self, event: Event, deadline: float, *, is_new: bool) -> _Reported:
        reference_id = event.associated_object_id
        transfer = await self._reader.read(
            "get_ach", lambda sdk: retrieve_ach_transfer(sdk, reference_id), deadline
        )
        request = as_created(transfer) if is_new else to_ach_request(transfer)
        is_reported = is_new or request.status != "pending"
        kind = f"ach.{'created' if is_new else request.status}" if is_reported else None

        async def resource(holder: AccountHolder) -> tuple[str, Model]:
            data = AchEventData(**dict(request), customer_id=holder.customer_id)
            return request.reference_id, data

        state = None if is_new else request.status
        passed = [] if is_new else passed_states(transfer)
        return _Reported(transfer.account_id, kind, resource, state, passed)

    async def _statement(self, event: Event, deadline: float) -> _Reported:
        statement = await self._reader.read(
            "get_statement",
            lambda sdk: sdk.account_statements.retrieve(event.associated_object_id),
            deadline,
        )
        period = to_period(statement)

        async def resource(holder: AccountHolder) -> tuple[str, Model]:
            data = StatementEventData(
                **dict(period),
                account_id=statement.account_id,
                customer_id=holder.customer_id,
            )
            return period.statement_id, data

        return _Reported(statement.account_id, "statement.available", resource)


async def _with_events(
    entry: FeedEntry, event: Event, reported: _Reported, holder: AccountHolder
) -> FeedEntry:
    """The entry with its event, and with those of the states that its object passed before."""
    assert reported.kind is not None, "nothing else is reported"
    earlier = tuple(
        ReportedEvent(
            event_type=EVENT_TYPES[f"ach.{request.status}"],
            customer_id=holder.customer_id,
            resource_id=request.reference_id,
            occurred_at=request.updated_at.astimezone(UTC),
            data=AchEventData(**dict(request), customer_id=holder.customer_id),
            state=request.status,
        )
        for request in reported.passed
    )
    resource_id, data = await reported.resource(holder)
    newest = ReportedEvent(
        event_type=EVENT_TYPES[reported.kind],
        customer_id=holder.customer_id,
        resource_id=resource_id,
        occurred_at=event.created_at.astimezone(UTC),
        data=data,
        state=reported.state,
    )
    return dataclasses.replace(entry, event=newest, earlier=earlier)


def _is_transient(error: Exception) -> bool:
    """Whether the object may be readable at another time: Increase, onboarding or the database is away now."""
    if is_away(error):
        return True
    if isinstance(error, ProviderError):
        cause = error.__cause__
        return isinstance(cause, AttemptFailed) and cause.failure is not Failure.UNREADABLE
    return isinstance(error, BanksideError) and error.status >= 500


def _locate(listed: Any, after: int) -> Place:
    assert isinstance(listed, ListedEvent)
    item = listed.item if isinstance(listed.item, dict) else {}
    return Place(after + 1, shown_type(item.get("category")), listed.state, listed.event_id)
