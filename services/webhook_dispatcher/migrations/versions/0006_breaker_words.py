"""The circuit breaker in the field's words: open blocks, half-open probes, closed is normal."""

from alembic import op

revision = "0006"
down_revision = "0005"


def upgrade() -> None:
    op.execute("ALTER TABLE endpoint RENAME COLUMN closed_until TO open_until")
    op.execute(
        "COMMENT ON COLUMN endpoint.open_until IS"
        " 'circuit breaker: no attempt before then, and one at a time until one succeeds; null: closed'"
    )
