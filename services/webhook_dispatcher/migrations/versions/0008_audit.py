"""The audit, which takes up what the inbox has finished."""

from alembic import op

from libs.persistence import audit

revision = "0008"
down_revision = "0007"


def upgrade() -> None:
    for statement in audit.DDL:
        op.execute(statement)
    op.execute("REVOKE UPDATE, DELETE ON audit FROM webhook_dispatcher")
    op.execute("CREATE INDEX inbox_finished ON inbox (finished_at) WHERE finished_at IS NOT NULL")
