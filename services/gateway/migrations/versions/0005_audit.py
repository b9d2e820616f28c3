"""The audit."""

from alembic import op

from libs.persistence import audit

revision = "0005"
down_revision = "0004"


def upgrade() -> None:
    for statement in audit.DDL:
        op.execute(statement)
    op.execute("REVOKE UPDATE, DELETE ON audit FROM gateway")
    op.execute("REVOKE INSERT, DELETE ON audit_turn FROM gateway")
