"""Books and feeds are only added to."""

from alembic import op

revision = "0005"
down_revision = "0004"


def upgrade() -> None:
    op.execute("REVOKE ALL ON alembic_version FROM provider_sandbox")
    op.execute(
        "REVOKE UPDATE, DELETE ON journal_entry, posting, feed_event, settlement_calculation FROM provider_sandbox"
    )
