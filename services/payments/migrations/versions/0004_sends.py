"""When a wire was last sent with unknown outcome; lives of the database; contradictions, for reconciliation."""

from alembic import op

from libs.persistence import released_ddl

revision = "0004"
down_revision = "0003"


def upgrade() -> None:
    op.execute("ALTER TABLE wires ADD COLUMN last_sent_at timestamptz")
    op.execute(
        "COMMENT ON COLUMN wires.last_sent_at IS"
        " 'of the last send whose outcome is not known; null while certainly nothing was sent'"
    )
    # The last attempt of a wire that is pending was no later than now.
    op.execute(
        "UPDATE wires SET last_sent_at = clock_timestamp()"
        " WHERE state = 'pending_submission' AND send_begun_at IS NOT NULL"
    )
    for statement in released_ddl.DATABASE_LIFE:
        op.execute(statement)
    op.execute(
        """
        CREATE TABLE contradiction (
            id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
            kind text NOT NULL,
            transaction_id text NOT NULL,
            feed_position bigint,
            ours text,
            theirs text,
            recorded_at timestamptz NOT NULL DEFAULT clock_timestamp()
        )
        """
    )
