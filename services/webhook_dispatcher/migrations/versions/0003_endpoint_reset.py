"""An endpoint that never succeeded has its time from when its URL was given, not from when its subscription was."""

from alembic import op

revision = "0003"
down_revision = "0002"

STATEMENTS = (
    # Of those that are there it is not known: they go by their subscription.
    "ALTER TABLE endpoint ADD COLUMN reset_at timestamptz",
    "ALTER TABLE endpoint ALTER COLUMN reset_at SET DEFAULT clock_timestamp()",
    (
        "COMMENT ON COLUMN endpoint.reset_at IS"
        " 'since when this is known of it: a subscription whose URL changes has a new row'"
    ),
)


def upgrade() -> None:
    for statement in STATEMENTS:
        op.execute(statement)
