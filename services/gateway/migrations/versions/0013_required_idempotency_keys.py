"""Keys whose writes need an Idempotency-Key."""

from alembic import op

revision = "0013"
down_revision = "0012"


def upgrade() -> None:
    op.execute(
        "ALTER TABLE credentials ADD COLUMN requires_idempotency_key boolean NOT NULL DEFAULT false"
    )
