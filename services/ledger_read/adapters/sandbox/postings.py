"""The financial provider's list of an account's postings that the mirror reads."""

from __future__ import annotations

from collections.abc import Collection
from uuid import UUID

from libs.contracts.errors import ProviderError
from libs.providers.errors import ProviderRefusal
from libs.providers.sandbox.http import ProviderClient, segment
from services.ledger_read.adapters.refused_reads import NotKnown, lost_accounts
from services.ledger_read.adapters.sandbox.financial_answers import AccountAnswer, AnswerT
from services.ledger_read.adapters.sandbox.ledger_answers import PostingsAnswer, TransactionAnswer
from services.ledger_read.adapters.sandbox.paging import broken_pages
from services.ledger_read.adapters.sandbox.reading import Params, Reader
from services.ledger_read.models import AccountHeading, ListedPostings, Posting
from services.ledger_read.ports import CursorRefused

NEWEST_PAGE = 100
LARGEST_PAGE = 200
"""The provider's limit; of what is read after the newest page."""


class SandboxPostings:
    """See `ports.PostingSource`."""

    def __init__(self, client: ProviderClient) -> None:
        self._reader = Reader(client)

    async def heading(self, account_id: str, deadline: float) -> AccountHeading:
        path = f"/accounts/{segment(account_id)}"
        answer = await self._read(account_id, "get_account", path, AccountAnswer, deadline)
        if answer.account_id != account_id:
            raise lost_accounts([account_id])
        return AccountHeading(answer.account_number, answer.account_group)

    async def page(self, account_id: str, cursor: str | None, deadline: float) -> ListedPostings:
        operation = "list_account_postings"
        path = f"/accounts/{segment(account_id)}/postings"
        params = [("limit", str(NEWEST_PAGE))]
        if cursor is not None:
            params = [("limit", str(LARGEST_PAGE)), ("cursor", cursor)]
        try:
            answer = await self._read(account_id, operation, path, PostingsAnswer, deadline, params)
        except ProviderError as error:
            if cursor is not None and isinstance(error.__cause__, ProviderRefusal):
                raise CursorRefused from error
            raise
        if any(row.account_id != account_id for row in answer.rows):
            raise broken_pages(operation, "of another account")

        async def read(ids: Collection[str], _: float) -> list[Posting]:
            return [_posting(row) for row in answer.rows if row.posting_id in ids]

        return ListedPostings([row.posting_id for row in answer.rows], answer.next_cursor, read)

    async def _read(
        self,
        account_id: str,
        operation: str,
        path: str,
        shape: type[AnswerT],
        deadline: float,
        params: Params = (),
    ) -> AnswerT:
        try:
            return await self._reader.read(operation, path, shape, deadline, params)
        except NotKnown:
            raise lost_accounts([account_id]) from None


def _posting(row: TransactionAnswer) -> Posting:
    return Posting(
        provider_id=row.posting_id,
        transaction_id=row.transaction_id,
        tx_uuid=UUID(row.posting_id),
        type=row.type,
        settled_at=row.settled_at,
        amount=row.amount,
        is_debit=row.direction == "debit",
        counterparty_name=row.counterparty_name,
        counterparty_id=row.counterparty_id,
    )
