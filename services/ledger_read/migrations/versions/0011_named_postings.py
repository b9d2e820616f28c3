"""Postings of events that came while the mirror knew none above them."""

from alembic import op

revision = "0011"
down_revision = "0010"


def upgrade() -> None:
    op.execute(
        """
        CREATE TABLE posting_named (
            account_id text NOT NULL,
            provider_id text NOT NULL,
            transaction_id text NOT NULL,
            tx_uuid uuid NOT NULL,
            type text NOT NULL,
            settled_at timestamptz NOT NULL,
            amount numeric NOT NULL CHECK (amount >= 0),
            is_debit boolean NOT NULL,
            counterparty_name text,
            counterparty_id text,
            named_at timestamptz NOT NULL DEFAULT clock_timestamp(),
            PRIMARY KEY (account_id, provider_id)
        )
        """
    )
