"""Books may be large: sums of postings are forgotten at once, suspects of earlier runs are left as they are, and a run
goes on with the scans of one that was given up.
"""

from alembic import op

revision = "0007"
down_revision = "0006"

STATEMENTS = (
    "ALTER TABLE scan ADD COLUMN advanced_at timestamptz",
    "COMMENT ON COLUMN scan.advanced_at IS 'when the last page was compared'",
    "ALTER TABLE suspect ADD COLUMN run_id uuid",
    "COMMENT ON COLUMN suspect.run_id IS 'of looks and found: they do not count in another run'",
    # The lock waits for the postings that are being added, also the first ones, whose bookmark is not there yet, and
    # keeps others from being added from the old bookmark. Who adds has moved the bookmark before it locks the sums.
    """
    CREATE FUNCTION forget_postings() RETURNS void
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = reconciliation, pg_temp SET lock_timeout = '5s' AS $$
    BEGIN
        LOCK TABLE feed_cursor IN SHARE ROW EXCLUSIVE MODE;
        DELETE FROM feed_cursor WHERE feed = 'postings';
        TRUNCATE posted, wire_debit;
    END $$
    """,
    "REVOKE ALL ON FUNCTION forget_postings() FROM PUBLIC",
    "GRANT EXECUTE ON FUNCTION forget_postings() TO reconciliation",
    "COMMENT ON FUNCTION forget_postings() IS 'sums and bookmark; deleting tens of millions of rows takes minutes'",
)


def upgrade() -> None:
    for statement in STATEMENTS:
        op.execute(statement)
