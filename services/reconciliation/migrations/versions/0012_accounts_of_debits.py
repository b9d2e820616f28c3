"""The account of a wire's debit.

The first process of this release that adds postings finds that the bookmark `wire_postings` is not where `postings` is,
forgets the sums and reads all postings once more. It does so again where one of the release before has added some.
"""

from alembic import op

revision = "0012"
down_revision = "0011"

STATEMENTS = (
    "ALTER TABLE wire_debit ADD COLUMN account_id text",
    """
    CREATE OR REPLACE FUNCTION forget_postings() RETURNS void
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = reconciliation, pg_temp SET lock_timeout = '5s' AS $$
    BEGIN
        LOCK TABLE feed_cursor IN SHARE ROW EXCLUSIVE MODE;
        DELETE FROM feed_cursor WHERE feed IN ('postings', 'wire_postings');
        TRUNCATE posted, wire_debit;
    END $$
    """,
)


def upgrade() -> None:
    for statement in STATEMENTS:
        op.execute(statement)
