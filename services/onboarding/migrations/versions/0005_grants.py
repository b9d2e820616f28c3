"""The running service has no business with the record of migrations."""

from alembic import op

revision = "0005"
down_revision = "0004"


def upgrade() -> None:
    op.execute("REVOKE ALL ON alembic_version FROM onboarding")
