"""Keys of a console that the gateway has registered by its settings are told from those that operators made."""

from alembic import op

revision = "0014"
down_revision = "0013"

STATEMENTS = (
    "ALTER TABLE credentials ADD COLUMN IF NOT EXISTS registered boolean NOT NULL DEFAULT false",
    # By the audit, whose rows of a key were written together with it. A day of the audit may go on beyond its midnight.
    """
    UPDATE credentials c SET registered = true
    WHERE c.operator IS NOT NULL AND EXISTS (
        SELECT FROM audit a
        WHERE a.day BETWEEN (c.created_at - interval '1 day')::date AND (c.created_at + interval '1 day')::date
            AND strpos(a.entry, '"action":"operators.register_console"') > 0
            AND strpos(a.entry, '"subscription_key":"' || c.subscription_key || '"') > 0
    )
    """,
    "COMMENT ON COLUMN credentials.registered IS 'out of the gateway''s settings; ended when these have another key'",
)


def upgrade() -> None:
    for statement in STATEMENTS:
        op.execute(statement)
