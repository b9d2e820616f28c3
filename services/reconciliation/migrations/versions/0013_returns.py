"""What came back of wires: sums of postings of type `return`, which are filled as revision 0012 says."""

from alembic import op

revision = "0013"
down_revision = "0012"

STATEMENTS = (
    """
    CREATE TABLE return_posting (
        transaction_id text PRIMARY KEY,
        postings integer NOT NULL,
        amount numeric(20, 2) NOT NULL,
        account_id text NOT NULL
    )
    """,
    "COMMENT ON TABLE return_posting IS 'postings of type return under each transaction id; a credit is positive'",
    """
    CREATE OR REPLACE FUNCTION forget_postings() RETURNS void
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = reconciliation, pg_temp SET lock_timeout = '5s' AS $$
    BEGIN
        LOCK TABLE feed_cursor IN SHARE ROW EXCLUSIVE MODE;
        DELETE FROM feed_cursor WHERE feed IN ('postings', 'wire_postings');
        TRUNCATE posted, wire_debit, return_posting;
    END $$
    """,
    "DELETE FROM feed_cursor WHERE feed = 'wire_postings'",
)


def upgrade() -> None:
    for statement in STATEMENTS:
        op.execute(statement)
