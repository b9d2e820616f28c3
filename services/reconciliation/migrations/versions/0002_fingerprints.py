"""Fingerprints of differences, by which explained ones are recognised; an index for purging closed ones."""

from alembic import op

revision = "0002"
down_revision = "0001"

STATEMENTS = (
    "ALTER TABLE difference ADD COLUMN fingerprint text",
    "COMMENT ON COLUMN difference.fingerprint IS 'the same as long as two looks find the same difference'",
    "CREATE INDEX difference_closed ON difference (closed_at) WHERE closed_at IS NOT NULL",
)


def upgrade() -> None:
    for statement in STATEMENTS:
        op.execute(statement)
