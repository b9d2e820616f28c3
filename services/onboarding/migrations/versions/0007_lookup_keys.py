"""The lookup keys that processes have had on their ring."""

from alembic import op

revision = "0007"
down_revision = "0006"


def upgrade() -> None:
    op.execute(
        """
        CREATE TABLE lookup_keys (
            key_id text PRIMARY KEY,
            first_seen_at timestamptz NOT NULL DEFAULT clock_timestamp()
        )
        """
    )
    op.execute("REVOKE UPDATE, DELETE ON lookup_keys FROM onboarding")
