"""The mirror's tables, written by whole pages of the provider: SQL constants over arrays, for asyncpg.

The postings of an account are in *segments*. Each was read from its newest posting backwards without a break, and a
later one is of newer postings. While a segment does not reach an earlier one, nor the end of the history, it has a
*gap*: the cursor where its reading goes on. An account without gaps is complete, from its oldest posting to the newest
one known. A page's postings, the move of its gap and the counts of its blocks are one transaction, which holds the row
of the account's mirror.

A posting that the provider names by an event is stored by itself where it lies below a known one (`add_named`): the
provider may show it late, below its newest page, and no reading would come to it again. It belongs to the newest
segment. It closes none of the gaps that there are, since these are closed by earlier segments only, and later ones end
above it, at the postings that it lies below.

One above all that are known is on the newest page of a reading that begins later. A reading that is under way may have
a page without it, and be about to store postings above it; so may the first reading of an account, where the provider
shows the posting late. So it waits in `posting_named`, and is stored together with the first posting that it lies
below.

*Blocks* count the postings between two keys (`settled_at`, `transaction_id`), at most `LARGEST_BLOCK` of them, wherever
on the calendar they lie: a page is found by adding up the blocks above it.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from uuid import UUID

import asyncpg

from libs.persistence.earlier_clock import process_time
from libs.persistence.engine import Database
from services.ledger_read.models import Posting, PostingPage

LARGEST_BLOCK = 2_000
"""Larger ones are divided. A page reads over one block at most, and adds up as many as the account has."""
NAMED_SECONDS = 3600.0
"""A posting waits in `posting_named` for at least this long, unless it is stored: longer than a reading takes, from the
provider's answer to the commit. Older ones are deleted by `delete_old_named`.
"""
DELETE_BATCH = 1_000
"""Of postings that have waited for longer."""
FILLING_SECONDS = 30.0
"""A process that fills gaps and writes no page within this time is replaced by another one."""

# Not as an anti join, for which all postings of the account may be read.
_COMPARE = """
    SELECT ARRAY (
            SELECT provider_id FROM unnest($2::text[]) AS page (provider_id) WHERE (
                SELECT true FROM posting WHERE account_id = $1 AND posting.provider_id = page.provider_id) IS NULL
        ) AS unknown,
        EXISTS (SELECT FROM posting_gap WHERE account_id = $1) AS has_gap
    """
_BEGIN = """
    WITH mirror AS (
        INSERT INTO posting_mirror (account_id) VALUES ($1) ON CONFLICT DO NOTHING RETURNING account_id
    )
    INSERT INTO posting_block (account_id, settled_at, transaction_id, postings)
    SELECT account_id, '-infinity', '', 0 FROM mirror
    """
_LOCK = "SELECT segments FROM posting_mirror WHERE account_id = $1 FOR UPDATE"
_SET_SEGMENTS = "UPDATE posting_mirror SET segments = $2 WHERE account_id = $1"
_REACHES = """
    SELECT EXISTS (
        SELECT FROM posting WHERE account_id = $1 AND provider_id = $2 AND segment < $3
    )
    """
# An id of ours that another posting has is an error, not a posting that is known.
_INSERT = """
    INSERT INTO posting (account_id, segment, provider_id, transaction_id, tx_uuid, type, settled_at, amount, is_debit,
        counterparty_name, counterparty_id)
    SELECT $1, $2, page.* FROM unnest($3::text[], $4::text[], $5::uuid[], $6::text[], $7::timestamptz[], $8::numeric[],
        $9::boolean[], $10::text[], $11::text[]) AS page
    ON CONFLICT (account_id, provider_id) DO NOTHING RETURNING settled_at, transaction_id
    """
_COUNT = """
    UPDATE posting_block AS block SET postings = block.postings + added.postings FROM (
        SELECT holding.settled_at, holding.transaction_id, count(*) AS postings
        FROM unnest($2::timestamptz[], $3::text[]) AS new (settled_at, transaction_id), LATERAL (
            SELECT settled_at, transaction_id FROM posting_block WHERE account_id = $1
                AND (posting_block.settled_at, posting_block.transaction_id) <= (new.settled_at, new.transaction_id)
            ORDER BY settled_at DESC, transaction_id DESC LIMIT 1
        ) AS holding GROUP BY 1, 2
    ) AS added
    WHERE account_id = $1 AND (block.settled_at, block.transaction_id) = (added.settled_at, added.transaction_id)
    RETURNING block.settled_at::text, block.transaction_id, block.postings
    """
# The parts are of the same size, give or take one. The first keeps the block's key.
_DIVIDE = """
    WITH above AS (
        SELECT settled_at, transaction_id FROM posting_block
        WHERE account_id = $1 AND (settled_at, transaction_id) > ($2::text::timestamptz, $3::text)
        ORDER BY settled_at, transaction_id LIMIT 1
    ), row AS (
        SELECT settled_at, transaction_id, ntile($4) OVER (ORDER BY settled_at, transaction_id) AS part FROM posting
        WHERE account_id = $1 AND (settled_at, transaction_id) >= ($2::text::timestamptz, $3::text)
            AND (settled_at, transaction_id) < (coalesce((SELECT settled_at FROM above), 'infinity'),
                coalesce((SELECT transaction_id FROM above), ''))
    ), part AS (
        SELECT DISTINCT ON (part) part, settled_at, transaction_id, count(*) OVER (PARTITION BY part) AS postings
        FROM row ORDER BY part, settled_at, transaction_id
    ), first AS (
        UPDATE posting_block SET postings = part.postings FROM part
        WHERE part = 1 AND account_id = $1
            AND (posting_block.settled_at, posting_block.transaction_id) = ($2::text::timestamptz, $3::text)
    )
    INSERT INTO posting_block (account_id, settled_at, transaction_id, postings)
    SELECT $1, settled_at, transaction_id, postings FROM part WHERE part > 1
    """
# Whether it is unknown and lies below a known one. An unknown one above all that are known is added to `posting_named`.
# One of the same moment as a known one may lie below it.
# In the order of an index, which then gives the newest one: `EXISTS` may read the table until it finds any.
_PLACE_NAMED = """
    WITH place AS (
        SELECT (
            SELECT true FROM posting WHERE account_id = $1 AND settled_at >= $6 ORDER BY settled_at DESC LIMIT 1
        ) IS NOT NULL AS is_below
        WHERE NOT EXISTS (SELECT FROM posting WHERE account_id = $1 AND provider_id = $2)
    ), above_all AS (
        INSERT INTO posting_named (account_id, provider_id, transaction_id, tx_uuid, type, settled_at, amount, is_debit,
            counterparty_name, counterparty_id)
        SELECT $1, $2, $3, $4, $5, $6, $7, $8, $9, $10 FROM place WHERE NOT is_below ON CONFLICT DO NOTHING
    )
    SELECT is_below FROM place
    """
_TAKE_NAMED = """
    DELETE FROM posting_named WHERE account_id = $1 AND settled_at <= $2
    RETURNING provider_id, transaction_id, tx_uuid, type, settled_at, amount, is_debit, counterparty_name,
        counterparty_id
    """
# Rows that are locked are about to be stored. Without an index: there is about an hour of postings, which the feed has
# read one by one.
_DELETE_OLD_NAMED = """
    WITH old AS (
        SELECT account_id, provider_id FROM posting_named
        WHERE named_at < least(clock_timestamp(), $3) - make_interval(secs => $1) LIMIT $2 FOR UPDATE SKIP LOCKED
    ), deleted AS (
        DELETE FROM posting_named USING old
        WHERE posting_named.account_id = old.account_id AND posting_named.provider_id = old.provider_id RETURNING true
    )
    SELECT count(*) FROM deleted
    """
_GAPS = (
    "SELECT segment, cursor FROM posting_gap WHERE account_id = $1 ORDER BY segment DESC LIMIT 1"
)
_OPEN_GAP = "INSERT INTO posting_gap (account_id, segment, cursor) VALUES ($1, $2, $3)"
_IS_AT = (
    "SELECT EXISTS (SELECT FROM posting_gap WHERE account_id = $1 AND segment = $2 AND cursor = $3)"
)
_MOVE_GAP = "UPDATE posting_gap SET cursor = $3 WHERE account_id = $1 AND segment = $2"
_CLOSE_GAP = "DELETE FROM posting_gap WHERE account_id = $1 AND segment = $2"
# A time later than any process sets it was written before the database's clock was set back: its process may be gone.
_TAKE = """
    UPDATE posting_mirror SET filler = $2, filling_until = clock_timestamp() + make_interval(secs => $3)
    WHERE account_id = $1 AND (filler = $2 OR filling_until NOT BETWEEN clock_timestamp()
        AND clock_timestamp() + make_interval(secs => 2 * $3)) RETURNING true
    """
_RELEASE = """
    UPDATE posting_mirror SET filler = NULL, filling_until = '-infinity' WHERE account_id = $1 AND filler = $2
    """


@dataclass(frozen=True, slots=True)
class Gap:
    """What is missing below a segment, from the cursor on."""

    segment: int
    cursor: str


@dataclass(frozen=True, slots=True)
class Comparison:
    """Of a page of the provider with the mirror.

    Args:
        unknown: the provider's ids of those postings that are not mirrored.
        has_gap: some of the account's history is missing.
    """

    unknown: frozenset[str]
    has_gap: bool


class PostingStore:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def compare(self, account_id: str, ids: Sequence[str]) -> Comparison:
        """The whole page is compared, also what lies below a known posting: one that the provider shows late, under the
        time at which it was made, is found as long as it is on the newest page; below it, by its event (`add_named`).

        Args:
            ids: the provider's, of all postings of a page.
        """
        async with self._database.driver() as connection:
            found = await connection.fetchrow(_COMPARE, account_id, ids)
        return Comparison(frozenset(found["unknown"]), found["has_gap"])

    async def add_newest(self, account_id: str, page: PostingPage) -> bool:
        """Store the newest postings of an account; whether some of its history is missing.

        Args:
            page: with at least one posting that is not known.
        """
        async with self._database.driver_transaction() as connection:
            await connection.execute(_BEGIN, account_id)
            segment = 1 + await connection.fetchval(_LOCK, account_id)
            await connection.execute(_SET_SEGMENTS, account_id, segment)
            reaches = await _reaches(connection, account_id, page, segment)
            newest_at = page.postings[0].settled_at
            named = await connection.fetch(_TAKE_NAMED, account_id, newest_at)
            postings = [*page.postings, *(Posting(**row) for row in named)]
            await _insert(connection, account_id, segment, postings)
            if not reaches and page.next_cursor is not None:
                await connection.execute(_OPEN_GAP, account_id, segment, page.next_cursor)
        return await self.gap(account_id) is not None

    async def add_named(self, account_id: str, posting: Posting) -> bool:
        """Store a posting that lies below a known one and is not known; whether it was stored.

        One above all that are known is stored by `add_newest`, with the first one above it: also the first one of an
        account that was not read yet, whose first reading may have a page without it. Only of a provider whose list is
        in the order of `settled_at`.

        Raises:
            asyncpg.IntegrityConstraintViolationError: another posting has its id of ours.
        """
        async with self._database.driver_transaction() as connection:
            # A statement of its own, so that the next one sees what a reading has stored that held the lock.
            segment = await connection.fetchval(_LOCK, account_id)
            if segment is None:
                await connection.execute(_BEGIN, account_id)
                segment = await connection.fetchval(_LOCK, account_id)
            is_below = await connection.fetchval(
                _PLACE_NAMED, account_id, *dataclasses.astuple(posting)
            )
            if is_below:
                await _insert(connection, account_id, segment, [posting])
        return bool(is_below)

    async def delete_old_named(self) -> None:
        """Delete postings that have waited for longer than `NAMED_SECONDS` by both clocks, such as those of an account
        that is not read.
        """
        deleted = DELETE_BATCH
        while deleted == DELETE_BATCH:
            async with self._database.driver() as connection:
                deleted = await connection.fetchval(
                    _DELETE_OLD_NAMED, NAMED_SECONDS, DELETE_BATCH, process_time()
                )

    async def gap(self, account_id: str) -> Gap | None:
        """The newest one."""
        async with self._database.driver() as connection:
            row = await connection.fetchrow(_GAPS, account_id)
        return None if row is None else Gap(row["segment"], row["cursor"])

    async def take(self, account_id: str, filler: UUID) -> bool:
        """Whether this process may fill gaps of the account now, for `FILLING_SECONDS` or until `release`."""
        async with self._database.driver() as connection:
            return bool(await connection.fetchval(_TAKE, account_id, filler, FILLING_SECONDS))

    async def release(self, account_id: str, filler: UUID) -> None:
        async with self._database.driver() as connection:
            await connection.execute(_RELEASE, account_id, filler)

    async def begin_again(
        self, account_id: str, filler: UUID, gap: Gap, cursor: str | None
    ) -> bool:
        """Move the cursor of a gap up to the newest page's, when the provider does not take its own any more.

        What is known between the two is read again: a posting of the gap's segment or a later one does not close it.
        The page itself is left out, since what of the gap is on it was stored by `add_newest`. False as of `fill`.
        """
        return await self.fill(account_id, filler, gap, PostingPage([], None, cursor))

    async def fill(self, account_id: str, filler: UUID, gap: Gap, page: PostingPage) -> bool:
        """Store the page at the cursor of a gap, and move or close the gap.

        False when nothing was stored, since another process fills gaps of the account, or did.
        """
        async with self._database.driver_transaction() as connection:
            await connection.fetchval(_LOCK, account_id)
            if not await connection.fetchval(_TAKE, account_id, filler, FILLING_SECONDS):
                return False
            if not await connection.fetchval(_IS_AT, account_id, gap.segment, gap.cursor):
                return False
            reaches = await _reaches(connection, account_id, page, gap.segment)
            await _insert(connection, account_id, gap.segment, page.postings)
            if reaches or page.next_cursor is None:
                await connection.execute(_CLOSE_GAP, account_id, gap.segment)
            else:
                await connection.execute(_MOVE_GAP, account_id, gap.segment, page.next_cursor)
        return True


async def _reaches(
    connection: asyncpg.Connection, account_id: str, page: PostingPage, segment: int
) -> bool:
    """Whether the last posting that was read is of an earlier segment.

    A known one above it proves nothing: the provider may show postings below one that it showed before.
    """
    if page.oldest_id is None:
        return False
    return bool(await connection.fetchval(_REACHES, account_id, page.oldest_id, segment))


async def _insert(
    connection: asyncpg.Connection, account_id: str, segment: int, postings: Sequence[Posting]
) -> None:
    rows = await connection.fetch(_INSERT, account_id, segment, *_columns(postings))
    if not rows:
        return
    keys: tuple[list[datetime], list[str]] = (
        [row["settled_at"] for row in rows],
        [row["transaction_id"] for row in rows],
    )
    for settled_at, transaction_id, count in await connection.fetch(_COUNT, account_id, *keys):
        if count > LARGEST_BLOCK:
            parts = 2 * count // LARGEST_BLOCK
            await connection.execute(_DIVIDE, account_id, settled_at, transaction_id, parts)


def _columns(
    postings: Sequence[Posting],
) -> tuple[
    list[str],
    list[str],
    list[UUID],
    list[str],
    list[datetime],
    list[Decimal],
    list[bool],
    list[str | None],
    list[str | None],
]:
    return (
        [posting.provider_id for posting in postings],
        [posting.transaction_id for posting in postings],
        [posting.tx_uuid for posting in postings],
        [posting.type for posting in postings],
        [posting.settled_at for posting in postings],
        [posting.amount for posting in postings],
        [posting.is_debit for posting in postings],
        [posting.counterparty_name for posting in postings],
        [posting.counterparty_id for posting in postings],
    )
