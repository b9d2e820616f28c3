"""The audit."""

from alembic import op

from libs.persistence import released_ddl

revision = "0004"
down_revision = "0003"


def upgrade() -> None:
    for statement in released_ddl.AUDIT:
        op.execute(statement)
    op.execute("REVOKE UPDATE, DELETE ON audit FROM ledger_read")
    op.execute("REVOKE INSERT, DELETE ON audit_turn FROM ledger_read")
