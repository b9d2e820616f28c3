"""Keys that were registered before there was a column for it, by the audit: without a lock on the table of keys."""

from alembic import op

revision = "0015"
down_revision = "0014"

# The rows of a key were written together with it. A day of the audit may go on beyond its midnight.
STATEMENT = """
    UPDATE credentials c SET registered = true
    WHERE c.operator IS NOT NULL AND EXISTS (
        SELECT FROM audit a
        WHERE a.day BETWEEN (c.created_at - interval '1 day')::date AND (c.created_at + interval '1 day')::date
            AND strpos(a.entry, '"action":"operators.register_console"') > 0
            AND strpos(a.entry, '"subscription_key":"' || c.subscription_key || '"') > 0
    )
"""


def upgrade() -> None:
    op.execute(STATEMENT)
