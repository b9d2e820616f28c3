"""Keys that went on beyond their rate: what they signed for a time up to `closed_to` is refused and not recorded."""

from alembic import op

revision = "0006"
down_revision = "0005"


def upgrade() -> None:
    op.execute("ALTER TABLE rates ADD COLUMN closed_to bigint NOT NULL DEFAULT 0")
