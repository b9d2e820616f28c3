"""The audit, which takes up what the inbox has finished."""

from alembic import op

from libs.persistence import released_ddl

revision = "0006"
down_revision = "0005"


def upgrade() -> None:
    for statement in released_ddl.AUDIT:
        op.execute(statement)
    op.execute("REVOKE UPDATE, DELETE ON audit FROM payments")
    op.execute("REVOKE INSERT, DELETE ON audit_turn FROM payments")
    op.execute("ALTER TABLE inbox ADD COLUMN audited boolean NOT NULL DEFAULT false")
    op.execute(
        "CREATE INDEX inbox_unaudited ON inbox (finished_at) WHERE finished_at IS NOT NULL AND NOT audited"
    )
