"""The audit."""

from alembic import op

from libs.persistence import audit

revision = "0004"
down_revision = "0003"


def upgrade() -> None:
    for statement in audit.DDL:
        op.execute(statement)
    op.execute("REVOKE UPDATE, DELETE ON audit FROM ledger_read")
    op.execute("REVOKE INSERT, DELETE ON audit_turn FROM ledger_read")
