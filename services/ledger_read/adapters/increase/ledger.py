"""ACH requests, statements and deposit locations at Increase. Its transactions are read by the mirror (`postings`)."""

from __future__ import annotations

import asyncio
import itertools
import re
import time
from datetime import UTC, date, datetime, timedelta
from uuid import UUID, uuid4, uuid5

import structlog
from increase.types import AccountStatement, FileLink

from libs.contracts.ach import AchRequest, AchStatus, ListAchRequests
from libs.contracts.bank_days import today_at_the_bank
from libs.contracts.deposit_locations import DepositLocation, ListDepositLocations
from libs.contracts.errors import ProviderError, ProviderTimeout, Unavailable
from libs.contracts.settlement import ListSettlementCalculations, SettlementCalculation
from libs.contracts.statements import (
    ListStatements,
    Statement,
    StatementFormat,
    StatementPeriod,
)
from libs.gathering import gather_or_cancel
from libs.providers.errors import ProviderRefusal
from libs.providers.increase.lists import LARGEST_PAGE, ListCall, RowT, read_pages
from libs.providers.increase.money import amount_of
from libs.providers.increase.new_statuses import note_new_status
from services.ledger_read.adapters.increase.ach_returns import DESCRIPTIONS
from services.ledger_read.adapters.increase.ach_transfers import (
    AchTransfer,
    list_ach_transfers,
    retrieve_ach_transfer,
)
from services.ledger_read.adapters.increase.periods import first_day, last_day
from services.ledger_read.adapters.increase.reading import Reader
from services.ledger_read.adapters.refused_reads import NotKnown
from services.ledger_read.deposit_loads import DepositLoads
from services.ledger_read.models import DepositLoad, LoadedLocation, Page

MOST_PAGES = 100
"""Of a list without pages; a longer one is refused, since a list must not be cut in silence."""
MOST_ROWS = MOST_PAGES * LARGEST_PAGE
TOO_MANY_ACH_REQUESTS = (
    f"The account has more than {MOST_ROWS:,} ACH requests, which are not listed at once."
    " Ask for one by reference_id."
)
TOO_MANY_STATEMENTS = f"The account has more than {MOST_ROWS:,} statements."
MOST_LINKS = 240
"""Of one list: statements of twenty years. A link is an object at Increase, which a longer list does not multiply."""
LINKS_AT_ONCE = 8
"""In this process."""
LINK_SECONDS = 15 * 60
"""A file has one link for each such period of the clock; it ends with the period after it."""
CONFLICT = 409
RECENT = timedelta(days=7)
"""A load of an earlier day is not Increase's current one."""
CERTIFICATE = re.compile("[0-9]{1,18}")
"""A number that `location_id` has room for."""
SECONDS_BESIDE_A_STORED_LOAD = 2.0
"""For Increase to tell its current load where a stored one is asked for."""
PATH_SEGMENTS_REFUSED = {".", ".."}
"""Ids that would change the URL's path. The SDK raises ValueError for them, as for an answer that is no JSON."""
TOO_MANY_LINKS = (
    f"More than {MOST_LINKS} statements would be linked at once. Ask for fewer: by start_date and end_date, or by"
    " statement_id."
)
_LINKS = UUID("3c0a4a1e-5f5b-4c0b-93f5-6a0f7e1d2b90")
_STATEMENTS = UUID("0a8a64f6-42f5-4f0c-8a52-7d2b6b1d0c57")


class IncreaseLedger:
    """See `ports.LedgerBesidePostings`."""

    def __init__(self, reader: Reader, loads: DepositLoads) -> None:
        self._reader = reader
        self._loads = loads
        self._links = asyncio.Semaphore(LINKS_AT_ONCE)
        self._log = structlog.get_logger("financial")

    async def ach_requests(self, command: ListAchRequests, deadline: float) -> list[AchRequest]:
        account_id = command.account_id
        if command.reference_id is not None:
            transfers = await self._ach_transfer(command.reference_id, deadline)
            # Another account's is not this one's, as if it did not exist.
            found = [transfer for transfer in transfers if transfer.account_id == account_id]
        else:
            found = await self._all(
                "list_ach",
                lambda sdk, cursor: list_ach_transfers(sdk, account_id, cursor),
                deadline,
                TOO_MANY_ACH_REQUESTS,
            )
            if any(transfer.account_id != account_id for transfer in found):
                raise self._reader.broken("list_ach", "of another account")
        # Increase's times are whole seconds, and it says no order within one.
        found.sort(key=lambda transfer: (transfer.created_at, transfer.id), reverse=True)
        return [to_ach_request(transfer) for transfer in found]

    async def statements(self, command: ListStatements, deadline: float) -> list[Statement]:
        account_id = command.account_id
        found = await self._all(
            "list_statements",
            lambda sdk, cursor: sdk.account_statements.list(
                account_id=account_id, cursor=cursor, limit=LARGEST_PAGE
            ),
            deadline,
            TOO_MANY_STATEMENTS,
        )
        if any(statement.account_id != account_id for statement in found):
            raise self._reader.broken("list_statements", "of another account")
        periods = [(to_period(statement), statement.file_id) for statement in found]
        chosen = [(period, file_id) for period, file_id in periods if _is_chosen(period, command)]
        chosen.sort(key=lambda each: (each[0].start_date, each[0].statement_id), reverse=True)
        if len(chosen) > MOST_LINKS:
            raise ProviderError(TOO_MANY_LINKS)

        async def linked(period: StatementPeriod, file_id: str) -> Statement:
            async with self._links:
                link = await self._link(file_id, deadline)
            formats = StatementFormat(
                format="pdf", url=link.unauthenticated_url, url_expires_at=link.expires_at
            )
            return Statement(**dict(period), formats=formats)

        return await gather_or_cancel(itertools.starmap(linked, chosen), name="links")

    async def deposit_locations(
        self, command: ListDepositLocations, deadline: float
    ) -> Page[DepositLocation]:
        """Increase has the current load only: each is stored when it is first read. Past ones come from there.

        A stored load is answered whether or not Increase can be asked. The first page of a recent one still stores the
        current load: a caller that asks each day for the load of the day before would find only every second one.
        """
        if command.load_date is not None:
            stored = await self._loads.page(command)
            is_recent = command.load_date >= today_at_the_bank() - RECENT
            if stored.as_of_date is not None:
                if is_recent and command.page == 1:
                    await self._try_to_store_current_load(command.account_id, deadline)
                return stored
            if not is_recent:
                return stored
        await self._store_current_load(command.account_id, deadline)
        return await self._loads.page(command)

    async def settlement_calculations(
        self, command: ListSettlementCalculations, deadline: float
    ) -> list[SettlementCalculation] | None:
        """Increase has no reserve accounts."""
        return None

    async def _ach_transfer(self, reference_id: str, deadline: float) -> list[AchTransfer]:
        if reference_id in PATH_SEGMENTS_REFUSED:
            return []
        try:
            return [
                await self._reader.read(
                    "get_ach", lambda sdk: retrieve_ach_transfer(sdk, reference_id), deadline
                )
            ]
        except NotKnown:
            return []

    async def _link(self, file_id: str, deadline: float) -> FileLink:
        """The file's link of this period: attempts and callers have one key, under which Increase makes one link."""
        period = int(time.time()) // LINK_SECONDS
        expires_at = datetime.fromtimestamp((period + 2) * LINK_SECONDS, UTC)

        async def create(key: UUID) -> FileLink:
            return await self._reader.read(
                "create_file_link",
                lambda sdk: sdk.file_links.create(
                    file_id=file_id, expires_at=expires_at, idempotency_key=str(key)
                ),
                deadline,
            )

        try:
            try:
                return await create(uuid5(_LINKS, f"{file_id} {period}"))
            except ProviderError as error:
                cause = error.__cause__
                if not isinstance(cause, ProviderRefusal) or cause.status != CONFLICT:
                    raise
                # Another attempt holds the key, or a release with another link lifetime used it. A link cannot
                # be read back, so make one under a fresh key.
                return await create(uuid4())
        except NotKnown as error:
            raise ProviderError from error

    async def _try_to_store_current_load(self, account_id: str, deadline: float) -> None:
        try:
            await self._store_current_load(
                account_id, min(deadline, time.time() + SECONDS_BESIDE_A_STORED_LOAD)
            )
        except (ProviderTimeout, ProviderError, Unavailable) as error:
            self._log.warning("current_load_not_stored", account_id=account_id, error=error.code)

    async def _store_current_load(self, account_id: str, deadline: float) -> None:
        """Raises ProviderTimeout, ProviderError, Unavailable: Increase does not say what it is."""
        load = await self._current_load(account_id, deadline)
        if load is not None:
            await self._loads.add(load)

    async def _current_load(self, account_id: str, deadline: float) -> DepositLoad | None:
        """None when the account's deposits are not swept, also for want of the feature at Increase."""
        try:
            found = await self._reader.read(
                "get_intrafi_balance",
                lambda sdk: sdk.intrafi_balances.intrafi_balance(account_id),
                deadline,
                is_feature_optional=True,
            )
        except NotKnown:
            return None
        locations: dict[int, LoadedLocation] = {}
        for part in found.balances:
            if CERTIFICATE.fullmatch(part.fdic_certificate_number) is None:
                raise self._reader.broken("get_intrafi_balance", "a certificate is no number")
            location_id = int(part.fdic_certificate_number)
            place = part.bank_location
            before = locations.get(location_id)
            balance = amount_of(part.balance) + (before.balance if before else 0)
            city_and_state = f"{place.city}, {place.state}" if place else ""
            locations[location_id] = LoadedLocation(location_id, part.bank, city_and_state, balance)
        return DepositLoad(account_id, found.effective_date, list(locations.values()))

    async def _all(
        self, operation: str, call: ListCall[RowT], deadline: float, too_many: str
    ) -> list[RowT]:
        pages = read_pages(
            self._reader.client,
            operation,
            call,
            deadline=deadline,
            most_pages=MOST_PAGES,
            too_many=too_many,
        )
        return [row async for page in pages for row in page.rows]


def to_ach_request(transfer: AchTransfer) -> AchRequest:
    status = _ach_status(transfer)
    code, description = _return(transfer, status)
    return AchRequest(
        reference_id=transfer.id,
        originating_account_id=transfer.account_id,
        status=status,
        amount=str(amount_of(abs(transfer.amount))),
        return_code=code,
        return_description=description,
        created_at=transfer.created_at,
        updated_at=_updated_at(transfer),
    )


def as_created(transfer: AchTransfer) -> AchRequest:
    """The request as it was when it was made."""
    return _as_it_was(to_ach_request(transfer), "pending", transfer.created_at)


def passed_states(transfer: AchTransfer) -> list[AchRequest]:
    """The request as it was in the states before its own of which the transfer keeps the moments, in their order."""
    request = to_ach_request(transfer)
    moments: list[tuple[AchStatus, datetime]] = []
    if transfer.submission is not None and request.status in {"settled", "returned"}:
        moments.append(("submitted", transfer.submission.submitted_at))
    if transfer.settlement is not None and request.status == "returned":
        moments.append(("settled", transfer.settlement.settled_at))
    return [_as_it_was(request, status, at) for status, at in moments]


def _as_it_was(request: AchRequest, status: AchStatus, at: datetime) -> AchRequest:
    """In an earlier state, into which it came at this moment."""
    return request.model_copy(
        update={
            "status": status,
            "return_code": None,
            "return_description": None,
            "updated_at": at,
        }
    )


def _ach_status(transfer: AchTransfer) -> AchStatus:
    match transfer.status:
        case (
            "pending_approval"
            | "pending_transfer_session_confirmation"
            | "pending_submission"
            | "pending_reviewing"
            | "requires_attention"
        ):
            return "pending"
        case "returned" | "rejected" | "canceled":
            return "returned"
        case "submitted":
            is_submitted = True
        case added:
            # It may have ended: what is told is how far its moments show that it came.
            note_new_status("ach_transfer", added)
            if transfer.return_ is not None:
                return "returned"
            is_submitted = transfer.submission is not None
    if transfer.settlement is not None:
        return "settled"
    return "submitted" if is_submitted else "pending"


def _return(transfer: AchTransfer, status: AchStatus) -> tuple[str | None, str | None]:
    """The code and words of a return: Nacha's, or ours for what was never sent."""
    if transfer.status == "rejected":
        return "REJECTED", "Rejected by the bank before it was sent"
    if transfer.status == "canceled":
        return "CANCELED", "Canceled before it was sent"
    returned = transfer.return_
    if returned is None or status != "returned":
        return None, None
    code = returned.raw_return_reason_code
    increases_words = returned.return_reason_code.replace("_", " ").capitalize()
    return code, DESCRIPTIONS.get(code, increases_words)


def _updated_at(transfer: AchTransfer) -> datetime:
    moments = [transfer.created_at]
    if transfer.approval is not None:
        moments.append(transfer.approval.approved_at)
    if transfer.submission is not None:
        moments.append(transfer.submission.submitted_at)
    if transfer.settlement is not None:
        moments.append(transfer.settlement.settled_at)
    if transfer.cancellation is not None:
        moments.append(transfer.cancellation.canceled_at)
    if transfer.return_ is not None:
        moments.append(transfer.return_.created_at)
    return max(moments)


def statement_id_of(statement_id: str) -> UUID:
    """What we call one of Increase's statements, which have no UUIDs."""
    return uuid5(_STATEMENTS, statement_id)


def to_period(statement: AccountStatement) -> StatementPeriod:
    start = first_day(statement.statement_period_start)
    end = last_day(statement.statement_period_end)
    return StatementPeriod(
        statement_id=str(statement_id_of(statement.id)),
        start_date=start,
        end_date=end,
        year=start.year,
        month=start.month,
        generated_at=statement.created_at,
    )


def _is_chosen(period: StatementPeriod, command: ListStatements) -> bool:
    """Whether the filters, all of them, find it: a period that overlaps theirs."""
    return (
        command.statement_id in (None, period.statement_id)
        and period.end_date >= (command.start_date or date.min)
        and period.start_date <= (command.end_date or date.max)
    )
