"""What is history is only added to."""

from alembic import op

revision = "0005"
down_revision = "0004"


def upgrade() -> None:
    op.execute("REVOKE ALL ON alembic_version FROM payments")
    op.execute("REVOKE UPDATE, DELETE ON wire_history, contradiction FROM payments")
