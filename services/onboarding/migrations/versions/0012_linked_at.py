"""When an external account was linked: that of an application is stored before, maybe days before."""

from alembic import op

revision = "0012"
down_revision = "0011"


def upgrade() -> None:
    op.execute("ALTER TABLE external_accounts ADD COLUMN IF NOT EXISTS linked_at timestamptz")
    op.execute(
        "COMMENT ON COLUMN external_accounts.linked_at IS 'null until then, and of earlier releases'"
    )
