"""How often an open difference was found otherwise, so that an operator explains what was read."""

from alembic import op

revision = "0008"
down_revision = "0007"

STATEMENTS = (
    "ALTER TABLE difference ADD COLUMN revision integer NOT NULL DEFAULT 1",
    "COMMENT ON COLUMN difference.revision IS 'one more each time the open row is found with another fingerprint'",
)


def upgrade() -> None:
    for statement in STATEMENTS:
        op.execute(statement)
