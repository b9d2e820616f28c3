"""Runs and how far they came, what they suspect, differences; sums of postings; cursors; leases."""

from alembic import op

from libs.persistence import released_ddl

revision = "0001"
down_revision = None

TABLES = (
    """
    CREATE TABLE run (
        run_id uuid PRIMARY KEY DEFAULT gen_random_uuid(),
        cause text NOT NULL,
        requested_at timestamptz NOT NULL DEFAULT clock_timestamp(),
        started_at timestamptz,
        finished_at timestamptz,
        outcome text CHECK (outcome IN ('complete', 'gave_up')),
        looked_at bigint NOT NULL DEFAULT 0,
        suspected bigint NOT NULL DEFAULT 0,
        in_flight bigint NOT NULL DEFAULT 0,
        differing bigint NOT NULL DEFAULT 0,
        CHECK ((finished_at IS NULL) = (outcome IS NULL))
    )
    """,
    "COMMENT ON COLUMN run.in_flight IS 'records that something was still going to change'",
    "CREATE UNIQUE INDEX run_waiting ON run ((true)) WHERE started_at IS NULL",
    "CREATE UNIQUE INDEX run_under_way ON run ((true)) WHERE started_at IS NOT NULL AND finished_at IS NULL",
    "CREATE INDEX run_finished ON run (finished_at DESC) WHERE finished_at IS NOT NULL",
    """
    CREATE TABLE scan (
        name text PRIMARY KEY,
        run_id uuid NOT NULL REFERENCES run ON DELETE CASCADE,
        next_after text,
        is_done boolean NOT NULL DEFAULT false
    )
    """,
    """
    CREATE TABLE suspect (
        comparison text NOT NULL,
        key text NOT NULL,
        due_at timestamptz NOT NULL DEFAULT clock_timestamp(),
        looks integer NOT NULL DEFAULT 0,
        found text[] NOT NULL DEFAULT '{}',
        PRIMARY KEY (comparison, key)
    )
    """,
    "COMMENT ON TABLE suspect IS 'of the run that is under way: what it looks at again'",
    "COMMENT ON COLUMN suspect.found IS 'fingerprints of the differences that the last look found'",
    "CREATE INDEX suspect_order ON suspect (due_at)",
    """
    CREATE TABLE difference (
        difference_id uuid PRIMARY KEY DEFAULT gen_random_uuid(),
        comparison text NOT NULL,
        key text NOT NULL,
        kind text NOT NULL,
        subject text NOT NULL,
        ids jsonb NOT NULL,
        ours jsonb,
        theirs jsonb,
        first_seen timestamptz NOT NULL DEFAULT clock_timestamp(),
        last_seen timestamptz NOT NULL DEFAULT clock_timestamp(),
        closed_at timestamptz,
        closed_as text CHECK (closed_as IN ('disappeared', 'explained')),
        reason text,
        closed_by text,
        gone_at timestamptz,
        CHECK ((closed_at IS NULL) = (closed_as IS NULL)),
        CHECK (closed_as IS DISTINCT FROM 'explained' OR (reason IS NOT NULL AND closed_by IS NOT NULL))
    )
    """,
    "COMMENT ON COLUMN difference.gone_at IS 'when an explained difference was no longer found as it was explained'",
    "CREATE UNIQUE INDEX difference_open ON difference (kind, subject) WHERE closed_at IS NULL",
    """
    CREATE UNIQUE INDEX difference_explained ON difference (kind, subject)
        WHERE closed_as = 'explained' AND gone_at IS NULL
    """,
    """
    CREATE INDEX difference_standing ON difference (comparison, key)
        WHERE closed_at IS NULL OR (closed_as = 'explained' AND gone_at IS NULL)
    """,
    "CREATE INDEX difference_subject ON difference (kind, subject)",
    "CREATE INDEX difference_newest ON difference (first_seen DESC)",
    """
    CREATE TABLE posted (
        account_id text PRIMARY KEY,
        total numeric(20, 2) NOT NULL,
        last_position bigint NOT NULL
    )
    """,
    "COMMENT ON TABLE posted IS 'the sum of each account''s postings up to its last one'",
    """
    CREATE TABLE wire_debit (
        transaction_id text PRIMARY KEY,
        postings integer NOT NULL,
        amount numeric(20, 2) NOT NULL
    )
    """,
    "COMMENT ON TABLE wire_debit IS 'what was posted under the id of a wire; a debit is negative'",
    """
    CREATE TABLE feed_watch (
        feed text PRIMARY KEY,
        position bigint NOT NULL,
        is_behind boolean NOT NULL,
        since timestamptz NOT NULL DEFAULT clock_timestamp()
    )
    """,
    "COMMENT ON TABLE feed_watch IS 'since when a feed has stood at the position at which it was last seen'",
)


def upgrade() -> None:
    for statement in (*released_ddl.FEED_CURSOR, *released_ddl.LEADER_LEASE, *TABLES):
        op.execute(statement)
