"""Where the requests of a key may come from (empty: everywhere), and the minute of its last one."""

from alembic import op

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    op.execute(
        """
        ALTER TABLE credentials
            ADD COLUMN allowed_networks text[] NOT NULL DEFAULT '{}',
            ADD COLUMN last_used_at timestamptz
        """
    )
