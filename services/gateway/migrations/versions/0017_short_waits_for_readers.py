"""Dropping nonces gives up sooner on a reader: meanwhile every admission waits."""

from alembic import op

revision = "0017"
down_revision = "0016"


def upgrade() -> None:
    op.execute("ALTER FUNCTION drop_nonce_partitions() SET lock_timeout = '100ms'")
