"""Check values of the keys that the service has had."""

from alembic import op

from libs.persistence import released_ddl

revision = "0017"
down_revision = "0016"


def upgrade() -> None:
    for statement in released_ddl.KEY_CHECK:
        op.execute(statement)
    op.execute("REVOKE UPDATE, DELETE ON key_check FROM onboarding")
