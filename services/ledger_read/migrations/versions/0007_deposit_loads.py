"""Loads of deposit locations, and states that were reported, where the provider keeps neither."""

from alembic import op

revision = "0007"
down_revision = "0006"

STATEMENTS = (
    """
    CREATE TABLE deposit_load (
        account_id text NOT NULL,
        load_date date NOT NULL,
        locations integer NOT NULL CHECK (locations >= 0),
        PRIMARY KEY (account_id, load_date)
    )
    """,
    """
    CREATE TABLE deposit_location (
        account_id text NOT NULL,
        load_date date NOT NULL,
        location_id bigint NOT NULL,
        name text NOT NULL,
        city_and_state text NOT NULL,
        balance numeric NOT NULL,
        PRIMARY KEY (account_id, load_date, location_id)
    )
    """,
    """
    CREATE TABLE reported_state (
        kind text NOT NULL,
        resource_id text NOT NULL,
        state text NOT NULL,
        PRIMARY KEY (kind, resource_id)
    )
    """,
    "REVOKE UPDATE, DELETE ON deposit_load, deposit_location FROM ledger_read",
)


def upgrade() -> None:
    for statement in STATEMENTS:
        op.execute(statement)
