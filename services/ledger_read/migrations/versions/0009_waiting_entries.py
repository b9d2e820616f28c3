"""Entries of the feed whose accounts onboarding is still opening."""

from alembic import op

revision = "0009"
down_revision = "0008"

STATEMENTS = (
    """
    CREATE TABLE waiting_account (
        account_id text PRIMARY KEY,
        customer_id text NOT NULL,
        tries integer NOT NULL DEFAULT 0,
        due_at timestamptz NOT NULL DEFAULT clock_timestamp()
    )
    """,
    "CREATE INDEX waiting_account_due ON waiting_account (due_at)",
    """
    CREATE TABLE waiting_entry (
        account_id text NOT NULL,
        position bigint NOT NULL,
        event_id text NOT NULL,
        type text NOT NULL,
        object_id text NOT NULL,
        occurred_at timestamptz NOT NULL,
        noted_at timestamptz NOT NULL DEFAULT clock_timestamp(),
        PRIMARY KEY (account_id, position)
    )
    """,
)


def upgrade() -> None:
    for statement in STATEMENTS:
        op.execute(statement)
