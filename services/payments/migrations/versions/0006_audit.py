"""The audit, which takes up what the inbox has finished."""

from alembic import op

from libs.persistence import audit

revision = "0006"
down_revision = "0005"


def upgrade() -> None:
    for statement in audit.DDL:
        op.execute(statement)
    op.execute("REVOKE UPDATE, DELETE ON audit FROM payments")
    op.execute("CREATE INDEX inbox_finished ON inbox (finished_at) WHERE finished_at IS NOT NULL")
