"""The mirror of the postings of accounts."""

from alembic import op

revision = "0005"
down_revision = "0004"

STATEMENTS = (
    # `filler` is the process that reads what is missing of the history, until `filling_until`.
    """
    CREATE TABLE posting_mirror (
        account_id text PRIMARY KEY,
        segments bigint NOT NULL DEFAULT 0,
        filler uuid,
        filling_until timestamptz NOT NULL DEFAULT '-infinity'
    )
    """,
    # Without precision, so that no digit of the provider's is rounded.
    """
    CREATE TABLE posting (
        account_id text NOT NULL,
        transaction_id text NOT NULL,
        provider_id text NOT NULL,
        tx_uuid uuid NOT NULL,
        segment bigint NOT NULL,
        type text NOT NULL,
        settled_at timestamptz NOT NULL,
        amount numeric NOT NULL CHECK (amount >= 0),
        is_debit boolean NOT NULL,
        counterparty_name text,
        counterparty_id text,
        PRIMARY KEY (account_id, transaction_id),
        UNIQUE (account_id, provider_id)
    )
    """,
    "CREATE INDEX posting_settled ON posting (account_id, settled_at, transaction_id)",
    "REVOKE UPDATE, DELETE ON posting FROM ledger_read",
    # Below the read part of a segment there are postings that were not read yet: those from the cursor on, up to the
    # first one of an earlier segment.
    """
    CREATE TABLE posting_gap (
        account_id text NOT NULL,
        segment bigint NOT NULL,
        cursor text NOT NULL,
        PRIMARY KEY (account_id, segment)
    )
    """,
    # How many postings an account has from this key up to the next block's.
    """
    CREATE TABLE posting_block (
        account_id text NOT NULL,
        settled_at timestamptz NOT NULL,
        transaction_id text NOT NULL,
        postings integer NOT NULL CHECK (postings >= 0),
        PRIMARY KEY (account_id, settled_at, transaction_id)
    ) WITH (fillfactor = 70)
    """,
    # The settings keep every plan on the indexes in their order: a plan is kept as long as its session, and one that
    # was made when the tables were small would sort a million rows.
    """
    CREATE FUNCTION postings_since(of_account text, moment timestamptz) RETURNS bigint
    LANGUAGE plpgsql STABLE
    SET enable_seqscan = off SET enable_bitmapscan = off SET enable_sort = off SET jit = off AS $$
    DECLARE
        counted bigint;
        block_settled_at timestamptz;
        block_transaction_id text;
        others bigint;
    BEGIN
        SELECT coalesce(sum(postings), 0) INTO counted FROM posting_block
        WHERE account_id = of_account AND settled_at >= moment;
        SELECT settled_at, transaction_id INTO block_settled_at, block_transaction_id FROM posting_block
        WHERE account_id = of_account AND settled_at >= moment ORDER BY settled_at, transaction_id LIMIT 1;
        -- The rest are in the one block that begins before the moment and ends after it.
        SELECT count(*) INTO others FROM posting
        WHERE account_id = of_account AND settled_at >= moment AND (settled_at, transaction_id)
            < (coalesce(block_settled_at, 'infinity'), coalesce(block_transaction_id, ''));
        RETURN counted + others;
    END $$
    """,
    """
    CREATE FUNCTION posting_page(
        of_account text, since timestamptz, until timestamptz, skip bigint, size integer
    ) RETURNS TABLE (
        total bigint, transaction_id text, tx_uuid uuid, type text, settled_at timestamptz, amount numeric,
        is_debit boolean, counterparty_name text, counterparty_id text
    ) LANGUAGE plpgsql STABLE
    SET enable_seqscan = off SET enable_bitmapscan = off SET enable_sort = off SET jit = off AS $$
    #variable_conflict use_column
    DECLARE
        newer bigint := CASE WHEN until = 'infinity' THEN 0 ELSE postings_since(of_account, until) END;
        before_settled_at timestamptz;
        before_transaction_id text;
    BEGIN
        total := postings_since(of_account, since) - newer;
        IF skip >= total THEN
            RETURN NEXT;
            RETURN;
        END IF;
        -- The block that holds the page's first row ends where the block above it begins.
        SELECT coalesce(above_settled_at, 'infinity'), coalesce(above_transaction_id, ''),
            newer + skip - (through - postings)
        INTO before_settled_at, before_transaction_id, skip FROM (
            SELECT block.settled_at, block.transaction_id, postings, sum(postings) OVER newest_first AS through,
                lag(block.settled_at) OVER newest_first AS above_settled_at,
                lag(block.transaction_id) OVER newest_first AS above_transaction_id
            FROM posting_block AS block WHERE account_id = of_account
            WINDOW newest_first AS (ORDER BY block.settled_at DESC, block.transaction_id DESC)
        ) AS blocks
        WHERE through > newer + skip ORDER BY settled_at DESC, transaction_id DESC LIMIT 1;
        RETURN QUERY SELECT total, posting.transaction_id, posting.tx_uuid, posting.type, posting.settled_at,
            posting.amount, posting.is_debit, posting.counterparty_name, posting.counterparty_id
        FROM posting
        WHERE account_id = of_account AND posting.settled_at >= since
            AND (posting.settled_at, posting.transaction_id) < (before_settled_at, before_transaction_id)
        ORDER BY posting.settled_at DESC, posting.transaction_id DESC OFFSET skip LIMIT size;
    END $$
    """,
)


def upgrade() -> None:
    for statement in STATEMENTS:
        op.execute(statement)
