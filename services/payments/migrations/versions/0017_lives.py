"""A command knows in which life of the database server it was accepted: see `libs.persistence.continuity`."""

from alembic import op

revision = "0017"
down_revision = "0016"

STATEMENTS = (
    # First without a default, so that commands of before have none: of them it is not known.
    "ALTER TABLE inbox ADD COLUMN life_started_at timestamptz",
    "ALTER TABLE inbox ALTER COLUMN life_started_at SET DEFAULT pg_postmaster_start_time()",
    """
    COMMENT ON COLUMN inbox.life_started_at IS
    'the start of the database server in whose life the command was first accepted'
    """,
)


def upgrade() -> None:
    for statement in STATEMENTS:
        op.execute(statement)
