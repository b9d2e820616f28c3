"""Keys of a console that the gateway has registered by its settings are told from those that operators made."""

from alembic import op

revision = "0014"
down_revision = "0013"


def upgrade() -> None:
    op.execute(
        "ALTER TABLE credentials ADD COLUMN IF NOT EXISTS registered boolean NOT NULL DEFAULT false"
    )
    op.execute(
        "COMMENT ON COLUMN credentials.registered IS 'out of the gateway''s settings; ended by another key of these'"
    )
