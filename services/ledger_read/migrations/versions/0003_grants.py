"""The running service has no business with the record of migrations."""

from alembic import op

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    op.execute("REVOKE ALL ON alembic_version FROM ledger_read")
