"""Increase's transactions as postings of the mirror."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any
from uuid import UUID, uuid5

import structlog
from cachetools import LRUCache

from libs.contracts.errors import ProviderError
from libs.contracts.ids import parse_id
from libs.contracts.transactions import TransactionType
from libs.gathering import gather_or_cancel
from libs.providers.errors import ProviderRefusal
from libs.providers.increase.money import amount_of
from libs.providers.increase.wires import retrieve_wire
from services.ledger_read.adapters.increase.numbers import AccountNumbers
from services.ledger_read.adapters.increase.reading import Reader
from services.ledger_read.adapters.increase.transactions import (
    INTEREST,
    WIRE,
    ListedTransaction,
    list_transactions,
)
from services.ledger_read.adapters.refused_reads import NotKnown
from services.ledger_read.models import AccountHeading, ListedPostings, Posting
from services.ledger_read.ports import CursorRefused

WIRES_AT_ONCE = 8
WIRES_KEPT = 10_000
"""In memory: a wire that was read for a posting's event is not read again for the list, nor when a page is read again
after a failure.
"""
GROUP = "deposit"
"""Increase has no other accounts."""
_POSTINGS = UUID("5d0c6a52-7c0b-4f6e-9d0e-3f9d0a6c1b11")

TYPES: Mapping[str, TransactionType] = {
    WIRE: "wire",
    "inbound_wire_transfer": "wire",
    "swift_transfer_intention": "wire",
    "inbound_wire_reversal": "return",
    "inbound_wire_transfer_reversal": "return",
    "swift_transfer_return": "return",
    "ach_transfer_intention": "ach",
    "inbound_ach_transfer": "ach",
    "ach_transfer_rejection": "return",
    "ach_transfer_return": "return",
    "inbound_ach_transfer_return_intention": "return",
    "check_deposit_return": "return",
    "inbound_check_deposit_return_intention": "return",
    "fednow_transfer_return": "return",
    "card_refund": "return",
    "fee_payment": "fee",
    INTEREST: "interest",
}
"""Of a source's category; any other one is a deposit or a withdrawal by its sign."""
NAMES = (
    "debtor_name",
    "originator_company_name",
    "originator_name",
    "creditor_name",
    "merchant_name",
)
"""Where sources have the other party's name, the best first. Where none has it, as for fees, interest and ACH transfers
that were sent, it is the transaction's description. An ACH transfer's `statement_descriptor` is the sender's own text.
"""
NAMES_OF_CREDITS = tuple(name for name in NAMES if name != "creditor_name")
"""The creditor of money that came in is the account's own holder."""


def id_of(transaction_id: str) -> UUID:
    """What we call one of Increase's transactions, which have no UUIDs."""
    return uuid5(_POSTINGS, transaction_id)


@dataclass(frozen=True, slots=True)
class _Wire:
    """What a posting takes over from its wire, and what does not change once the wire is there."""

    our_id: UUID | None
    creditor_name: str | None
    external_account_id: str | None


class IncreasePostings:
    """See `ports.PostingSource`."""

    def __init__(self, reader: Reader, numbers: AccountNumbers) -> None:
        self._reader = reader
        self._numbers = numbers
        self._places = asyncio.Semaphore(WIRES_AT_ONCE)
        self._wires: LRUCache[str, _Wire] = LRUCache(WIRES_KEPT)
        self._log = structlog.get_logger("financial")

    async def heading(self, account_id: str, deadline: float) -> AccountHeading:
        return AccountHeading(await self._numbers.number(account_id, deadline), GROUP)

    async def page(self, account_id: str, cursor: str | None, deadline: float) -> ListedPostings:
        try:
            page = await list_transactions(self._reader, account_id, cursor, deadline)
        except ProviderError as error:
            if cursor is not None and isinstance(error.__cause__, ProviderRefusal):
                raise CursorRefused from error
            raise

        async def read(ids: Collection[str], deadline: float) -> list[Posting]:
            rows = [row for row in page.rows if row.id in ids]
            return await gather_or_cancel(
                (self.posting(row, deadline) for row in rows), name="postings"
            )

        return ListedPostings([row.id for row in page.rows], page.next_cursor, read)

    async def posting(self, row: ListedTransaction, deadline: float) -> Posting:
        """The debit of a wire is known under the id of the wire, which is the key under which it was sent."""
        wire = await self._wire(row, deadline) if row.category == WIRE else None
        tx_uuid = id_of(row.id)
        is_debit = row.amount < 0
        return Posting(
            provider_id=row.id,
            transaction_id=str((wire and wire.our_id) or tx_uuid),
            tx_uuid=tx_uuid,
            type=TYPES.get(row.category, "withdrawal" if is_debit else "deposit"),
            settled_at=row.created_at,
            amount=amount_of(abs(row.amount)),
            is_debit=is_debit,
            counterparty_name=(wire.creditor_name if wire else _name(row.details, is_debit))
            or row.description,
            counterparty_id=wire.external_account_id if wire else None,
        )

    async def _wire(self, row: ListedTransaction, deadline: float) -> _Wire:
        wire_id = str(row.details.get("transfer_id"))
        if (known := self._wires.get(wire_id)) is not None:
            return known
        try:
            async with self._places:
                wire = await self._reader.read(
                    "get_wire", lambda sdk: retrieve_wire(sdk, wire_id), deadline
                )
        except NotKnown:
            self._log.error(
                "wire_of_a_posting_unknown_to_provider",
                wire_id=wire_id,
                transaction_id=row.id,
                account_id=row.account_id,
            )
            raise ProviderError from None
        found = self._wires[wire_id] = _Wire(
            our_id=parse_id(wire.idempotency_key) if wire.idempotency_key else None,
            creditor_name=wire.creditor.name if wire.creditor else None,
            external_account_id=wire.external_account_id,
        )
        return found


def _name(details: Mapping[str, Any], is_debit: bool) -> str | None:
    for field in NAMES if is_debit else NAMES_OF_CREDITS:
        name = details.get(field)
        if isinstance(name, str) and name:
            return name
    return None
