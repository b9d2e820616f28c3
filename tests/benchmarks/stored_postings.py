"""The mirror of an account filled by the million: postings older than those that the bank has, and their blocks."""

from __future__ import annotations

from services.ledger_read.mirror.store import LARGEST_BLOCK
from tests.benchmarks.stored_rows import FILL_SECONDS, connected

_POSTINGS = """
    INSERT INTO posting (account_id, segment, provider_id, transaction_id, tx_uuid, type, settled_at, amount, is_debit,
        counterparty_name, counterparty_id)
    SELECT $1, 0, 'stored_' || n, 'txn_' || lpad(n::text, 9, '0'), gen_random_uuid(), 'deposit',
        (SELECT min(settled_at) FROM posting WHERE account_id = $1) - n * interval '31 seconds', n * 0.01, n % 3 = 0,
        'Northwind Traders', 'cpt_1' FROM generate_series(1, $2::int) AS n
    """
_NO_BLOCKS = "DELETE FROM posting_block WHERE account_id = $1"
# As they are when a history was read to its end: half full at least.
_BLOCKS = """
    INSERT INTO posting_block (account_id, settled_at, transaction_id, postings)
    SELECT $1, CASE WHEN part = 1 THEN '-infinity' ELSE settled_at END,
        CASE WHEN part = 1 THEN '' ELSE transaction_id END, postings
    FROM (
        SELECT DISTINCT ON (part) part, settled_at, transaction_id, count(*) OVER (PARTITION BY part) AS postings
        FROM (
            SELECT settled_at, transaction_id, ntile($2) OVER (ORDER BY settled_at, transaction_id) AS part
            FROM posting WHERE account_id = $1
        ) AS ordered ORDER BY part, settled_at, transaction_id
    ) AS first
    """


async def fill_postings(url: str, account_id: str, count: int) -> str:
    """Add so many older postings to an account that is mirrored to its end; the id of the oldest.

    Args:
        url: of the owner of the tables.
    """
    async with connected(url) as connection:
        await connection.execute(_POSTINGS, account_id, count, timeout=FILL_SECONDS)
        await connection.execute(_NO_BLOCKS, account_id)
        parts = 2 * count // LARGEST_BLOCK
        await connection.execute(_BLOCKS, account_id, parts, timeout=FILL_SECONDS)
        await connection.execute("VACUUM ANALYZE posting, posting_block", timeout=FILL_SECONDS)
    return f"txn_{count:09}"
