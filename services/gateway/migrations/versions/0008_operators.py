"""Operators, and the keys that belong to them instead of to a tenant."""

from alembic import op

revision = "0008"
down_revision = "0007"

STATEMENTS = (
    """
    CREATE TABLE operators (
        name text PRIMARY KEY,
        role text NOT NULL CHECK (role IN ('viewer', 'operator', 'admin', 'console')),
        created_at timestamptz NOT NULL DEFAULT now(),
        revoked_at timestamptz
    )
    """,
    "CREATE INDEX operators_by_time ON operators (created_at, name)",
    """
    ALTER TABLE credentials
        ALTER COLUMN tenant DROP NOT NULL,
        ADD COLUMN operator text REFERENCES operators,
        DROP CONSTRAINT credentials_family_check,
        ADD CONSTRAINT credentials_family_check CHECK (family IN ('partner', 'customer', 'operator')),
        ADD CONSTRAINT credentials_tenant_check CHECK ((tenant IS NULL) = (family = 'operator')),
        ADD CONSTRAINT credentials_operator_check CHECK ((operator IS NOT NULL) = (family = 'operator'))
    """,
    "CREATE INDEX ix_credentials_operator ON credentials (operator)",
)


def upgrade() -> None:
    for statement in STATEMENTS:
        op.execute(statement)
