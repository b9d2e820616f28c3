"""A held delivery that is released has its whole retry schedule before it."""

from alembic import op

revision = "0013"
down_revision = "0012"

STATEMENTS = (
    "ALTER TABLE delivery ADD COLUMN schedule_from integer NOT NULL DEFAULT 0",
    "ALTER TABLE delivery ADD COLUMN released_at timestamptz",
    "COMMENT ON COLUMN delivery.schedule_from IS 'attempts that were made before the present retry schedule began'",
)


def upgrade() -> None:
    for statement in STATEMENTS:
        op.execute(statement)
