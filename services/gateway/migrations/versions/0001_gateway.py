"""Tenants, credentials, nonces, rates, failures by address."""

from alembic import op

revision = "0001"
down_revision = None


def upgrade() -> None:
    for statement in (
        """
        CREATE TABLE tenants (
            tenant text PRIMARY KEY,
            name text NOT NULL,
            created_at timestamptz NOT NULL DEFAULT now()
        )
        """,
        """
        CREATE TABLE credentials (
            id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
            subscription_key text NOT NULL UNIQUE,
            tenant text NOT NULL REFERENCES tenants,
            family text NOT NULL CHECK (family IN ('partner', 'customer')),
            customer_id uuid CHECK ((customer_id IS NOT NULL) = (family = 'customer')),
            scopes text[] NOT NULL,
            secret text NOT NULL,
            previous_secret text,
            previous_secret_expires_at timestamptz,
            reads_per_minute integer NOT NULL CHECK (reads_per_minute > 0),
            writes_per_minute integer NOT NULL CHECK (writes_per_minute > 0),
            wires_per_minute integer NOT NULL CHECK (wires_per_minute > 0),
            created_at timestamptz NOT NULL DEFAULT now(),
            expires_at timestamptz,
            revoked_at timestamptz
        )
        """,
        # Logged: what was accepted before a crash of the database must not pass again after it.
        """
        CREATE TABLE nonces (
            credential_id bigint NOT NULL,
            timestamp bigint NOT NULL,
            nonce text NOT NULL,
            PRIMARY KEY (credential_id, timestamp, nonce)
        ) PARTITION BY RANGE (timestamp)
        """,
        """
        CREATE TABLE rates (
            credential_id bigint NOT NULL,
            class text NOT NULL,
            due double precision NOT NULL,
            granted bigint NOT NULL,
            PRIMARY KEY (credential_id, class)
        ) WITH (fillfactor = 50)
        """,
        """
        CREATE UNLOGGED TABLE failures (
            address text NOT NULL,
            minute bigint NOT NULL,
            count bigint NOT NULL,
            PRIMARY KEY (address, minute)
        )
        """,
    ):
        op.execute(statement)
