"""Catching up with the provider: before an account is read from the mirror, its newest postings are.

1. One page, the newest postings, is read, and what of it is not known is stored. Nearly always it holds a posting that
   is known, and nothing is missing.
2. Else the account has gaps, which are filled page by page, by one process at a time (a lease in the account's row). It
   goes on when the callers that wait are gone; when it fails, the next read of the account goes on at the same cursor.

Callers of this process share both; what a caller gets of step 1 was begun after it asked.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from uuid import UUID, uuid4

import asyncpg
import structlog
from prometheus_client import Counter, Gauge

from libs.contracts.errors import BanksideError, ProviderError, Unavailable
from libs.persistence.availability import is_away
from services.ledger_read.mirror.joining import JoinedCalls
from services.ledger_read.mirror.store import Gap, PostingStore
from services.ledger_read.models import Posting, PostingPage
from services.ledger_read.ports import CursorRefused, PostingSource

PAGE_SECONDS = 20.0
"""For what is stored together, with what the provider's client tries again; shorter than the lease of the filler."""
MOST_PAGES = 8
"""Of a gap, stored together."""
STORE_SECONDS = 5.0
"""Pages that were read for longer than this are stored, however few they are."""
FILLS_AT_ONCE = 4
"""Histories that are read at the same moment."""
MOST_FILLS = 1_000
"""Accounts whose gaps are filled, or wait to be, by this process."""
LOOK_SECONDS = 0.2
"""How often is looked whether another process has filled the gaps."""
ANSWER_MARGIN_SECONDS = 0.25
STILL_READ = "The account's history is still being read from the bank. Try again shortly."

PAGES = Counter("bankside_mirror_pages", "Pages of postings read into the mirror", ("of",))
FILLING = Gauge("bankside_mirror_filling", "Accounts whose history is being read into the mirror")


class CatchingUp:
    """Made by `open_catching_up`."""

    def __init__(self, source: PostingSource, store: PostingStore) -> None:
        self._source = source
        self._store = store
        self._newest: JoinedCalls[bool] = JoinedCalls("mirror-newest")
        self._fills: JoinedCalls[None] = JoinedCalls("mirror-fill")
        self._capacity = asyncio.Semaphore(FILLS_AT_ONCE)
        self._log = structlog.get_logger("mirror")

    async def catch_up(self, account_id: str, deadline: float) -> None:
        """Return when all postings are stored that the account had when this was called.

        Raises:
            Unavailable: the deadline comes first. The reading goes on.
            ProviderTimeout, Unavailable, ProviderError: the provider cannot be read.
        """
        is_missing_some = await self._newest.run(account_id, lambda: self._read_newest(account_id))
        if not is_missing_some:
            return
        if len(self._fills) >= MOST_FILLS:
            raise Unavailable(STILL_READ)
        try:
            async with asyncio.timeout(deadline - ANSWER_MARGIN_SECONDS - time.time()):
                # A filling that was about to end when it was joined does not know the gap that was opened last.
                while await self._store.gap(account_id) is not None:
                    await self._fills.join(account_id, lambda: self._fill(account_id))
        except TimeoutError:
            raise Unavailable(STILL_READ) from None

    async def close(self) -> None:
        await self._newest.close()
        await self._fills.close()

    async def _read_newest(self, account_id: str) -> bool:
        deadline = time.time() + PAGE_SECONDS
        page = await self._source.page(account_id, None, deadline)
        PAGES.labels("newest").inc()
        compared = await self._store.compare(account_id, page.ids)
        if not compared.unknown:
            return compared.has_gap
        postings = await page.read(compared.unknown, deadline)
        try:
            return await self._store.add_newest(
                account_id, PostingPage(postings, page.ids[-1], page.next_cursor)
            )
        except asyncpg.IntegrityConstraintViolationError as error:
            raise self._broken(account_id, "with an id of another posting") from error

    async def _fill(self, account_id: str) -> None:
        filler = uuid4()
        pages = 1
        FILLING.inc()
        try:
            while await self._store.gap(account_id) is not None:
                async with self._capacity:
                    # Take the lease only inside the semaphore: it would expire while its owner waited for a slot.
                    is_filler = await self._store.take(account_id, filler)
                    # Looked for again: another process may have moved or closed it meanwhile.
                    gap = await self._store.gap(account_id) if is_filler else None
                    if gap is not None:
                        is_filler = await self._fill_pages(account_id, filler, gap, pages)
                if not is_filler:
                    await asyncio.sleep(LOOK_SECONDS)
                    continue
                # A few postings are one page away; a whole history is read faster in larger pieces.
                pages = min(2 * pages, MOST_PAGES)
        except asyncpg.IntegrityConstraintViolationError as error:
            raise self._broken(account_id, "with an id of another posting") from error
        finally:
            FILLING.dec()
            await self._release(account_id, filler)
        if pages > 1:
            self._log.info("history_read", account_id=account_id)

    async def _release(self, account_id: str, filler: UUID) -> None:
        """Raises nothing, since it would replace an error that is under way. A lease that is left ends by itself."""
        try:
            await self._store.release(account_id, filler)
        except Exception as error:
            if not is_away(error):
                self._log.error("release_failed", account_id=account_id, exc_info=error)

    async def _fill_pages(self, account_id: str, filler: UUID, gap: Gap, count: int) -> bool:
        """As `PostingStore.fill`, with up to `count` pages from the gap's cursor on."""
        postings: list[Posting] = []
        oldest_id: str | None = None
        cursor: str | None = gap.cursor
        began = time.time()
        for _ in range(count):
            try:
                page = await self._source.page(account_id, cursor, began + PAGE_SECONDS)
                # A statement for each page: it may save a request to the provider for each of its postings.
                compared = await self._store.compare(account_id, page.ids)
                postings += await page.read(compared.unknown, began + PAGE_SECONDS)
            except CursorRefused:
                if cursor != gap.cursor:
                    break
                return await self._begin_again(account_id, filler, gap)
            except BanksideError:
                if cursor != gap.cursor:
                    break  # what was read is stored; the error comes again, or was over
                raise
            PAGES.labels("gap").inc()
            if page.next_cursor == cursor:
                raise self._broken(account_id, "without end")
            oldest_id = page.ids[-1] if page.ids else oldest_id
            cursor = page.next_cursor
            if cursor is None or time.time() > began + STORE_SECONDS:
                break
        read = PostingPage(postings, oldest_id, cursor)
        return await self._store.fill(account_id, filler, gap, read)

    async def _begin_again(self, account_id: str, filler: UUID, gap: Gap) -> bool:
        self._log.warning("cursor_refused", account_id=account_id)
        newest = await self._source.page(account_id, None, time.time() + PAGE_SECONDS)
        if newest.next_cursor == gap.cursor:
            raise self._broken(account_id, "of refused cursors")
        return await self._store.begin_again(account_id, filler, gap, newest.next_cursor)

    def _broken(self, account_id: str, how: str) -> ProviderError:
        self._log.error("provider_postings_broken", account_id=account_id, how=how)
        return ProviderError()


@asynccontextmanager
async def open_catching_up(source: PostingSource, store: PostingStore) -> AsyncIterator[CatchingUp]:
    """What is being read at the end is left where it is; the next read of the account goes on there."""
    catching_up = CatchingUp(source, store)
    try:
        yield catching_up
    finally:
        await catching_up.close()
