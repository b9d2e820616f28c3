"""Which signed timestamps have a partition of nonces: those below have lost it, those above have none yet."""

from alembic import op

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    op.execute(
        """
        CREATE TABLE nonce_bounds (
            only_row boolean PRIMARY KEY DEFAULT true CHECK (only_row),
            floor bigint NOT NULL,
            ceiling bigint NOT NULL CHECK (ceiling >= floor)
        )
        """
    )
    op.execute(
        """
        INSERT INTO nonce_bounds (floor, ceiling)
        SELECT coalesce(min(start), 0), coalesce(max(start) + 600, 0) FROM (
            SELECT substring(inhrelid::regclass::text FROM '[0-9]+$')::bigint AS start
            FROM pg_inherits WHERE inhparent = 'nonces'::regclass
        ) AS partitions
        """
    )
