"""Postings that the provider's feed names: one that is shown late, below its newest page, is stored by its event.

Readings begin with the newest page and end at what is known, so that they never come to such a posting again.
"""

from __future__ import annotations

import asyncpg
import structlog

from services.ledger_read.mirror.store import PostingStore
from services.ledger_read.models import Posting


class NamedPostings:
    def __init__(self, store: PostingStore) -> None:
        self._store = store
        self._log = structlog.get_logger("mirror")

    async def add(self, account_id: str, posting: Posting) -> None:
        """Store it, or keep it for the reading that stores the first one above it. See `PostingStore.add_named`."""
        try:
            if await self._store.add_named(account_id, posting):
                self._log.info("posting_added_by_its_event", account_id=account_id)
        except asyncpg.IntegrityConstraintViolationError:
            # Readers of the account are told so; the feed has other accounts as well.
            self._log.error(
                "provider_postings_broken",
                account_id=account_id,
                how="with an id of another posting",
            )
