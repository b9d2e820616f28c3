"""The outbox, the feed cursor and the sequence of each resource's events."""

from alembic import op

from libs.persistence import released_ddl

revision = "0001"
down_revision = None


def upgrade() -> None:
    for statement in (*released_ddl.OUTBOX, *released_ddl.FEED_CURSOR):
        op.execute(statement)
    op.execute(
        """
        CREATE TABLE resource_sequences (
            kind text NOT NULL,
            resource_id text NOT NULL,
            sequence bigint NOT NULL CHECK (sequence > 0),
            PRIMARY KEY (kind, resource_id)
        )
        """
    )
