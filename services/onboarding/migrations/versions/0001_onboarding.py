"""Customers, persons, external accounts, accounts, saga steps; inbox, outbox, cursor."""

from alembic import op

from libs.persistence import released_ddl

revision = "0001"
down_revision = None

TABLES = (
    """
    CREATE TABLE customers (
        customer_id uuid PRIMARY KEY,
        tenant text NOT NULL,
        saga_id uuid NOT NULL,
        status text NOT NULL CHECK (status IN
            ('pending', 'awaiting_documents', 'pending_review', 'approved', 'denied', 'canceled')),
        business jsonb NOT NULL,
        ein_last_four text NOT NULL,
        identity_id text UNIQUE,
        verification jsonb,
        core_id text UNIQUE,
        refused_by_provider boolean NOT NULL DEFAULT false,
        sequence bigint NOT NULL DEFAULT 0,
        created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
        updated_at timestamptz NOT NULL DEFAULT clock_timestamp(),
        UNIQUE (tenant, customer_id)
    )
    """,
    "COMMENT ON COLUMN customers.business IS 'ein sealed'",
    "CREATE INDEX customers_newest ON customers (tenant, created_at DESC, customer_id DESC)",
    # An EIN is held while its customer is neither denied nor canceled. A table, not an index over customers: during
    # an update a customer holds the old number and the new one, until both providers have said yes.
    """
    CREATE TABLE ein_holds (
        tenant text NOT NULL,
        ein_digest bytea NOT NULL,
        customer_id uuid NOT NULL,
        PRIMARY KEY (tenant, ein_digest),
        FOREIGN KEY (tenant, customer_id) REFERENCES customers (tenant, customer_id)
            DEFERRABLE INITIALLY DEFERRED
    )
    """,
    "CREATE INDEX ein_holds_customer ON ein_holds (customer_id)",
    """
    CREATE TABLE persons (
        tenant text NOT NULL,
        person_id uuid NOT NULL,
        customer_id uuid NOT NULL,
        position smallint NOT NULL,
        details jsonb NOT NULL,
        identity_id text UNIQUE,
        verification jsonb,
        core_id text UNIQUE,
        sequence bigint NOT NULL DEFAULT 0,
        PRIMARY KEY (tenant, person_id),
        FOREIGN KEY (tenant, customer_id) REFERENCES customers (tenant, customer_id)
    )
    """,
    "COMMENT ON COLUMN persons.details IS 'tin and date_of_birth sealed'",
    "CREATE INDEX persons_customer ON persons (customer_id, position)",
    """
    CREATE TABLE external_accounts (
        draft_id uuid PRIMARY KEY,
        tenant text NOT NULL,
        customer_id uuid NOT NULL,
        external_account_id text UNIQUE,
        details jsonb NOT NULL,
        number_last_four text NOT NULL,
        number_digest bytea NOT NULL,
        is_primary boolean NOT NULL,
        sequence bigint NOT NULL DEFAULT 0,
        created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
        UNIQUE (customer_id, number_digest),
        FOREIGN KEY (tenant, customer_id) REFERENCES customers (tenant, customer_id)
    )
    """,
    "COMMENT ON COLUMN external_accounts.details IS 'account_number sealed'",
    "CREATE UNIQUE INDEX external_accounts_primary ON external_accounts (customer_id) WHERE is_primary",
    # Without an owner: news of it came before the answer that says whose it is. No query by a tenant sees such a row.
    """
    CREATE TABLE accounts (
        account_id text PRIMARY KEY,
        tenant text,
        customer_id uuid,
        account_number text,
        account_group text NOT NULL DEFAULT 'deposit' CHECK (account_group IN ('deposit', 'reserve')),
        status text NOT NULL,
        CHECK (num_nulls(tenant, customer_id, account_number) IN (0, 3)),
        FOREIGN KEY (tenant, customer_id) REFERENCES customers (tenant, customer_id)
    )
    """,
    "CREATE INDEX accounts_tenant ON accounts (tenant, account_id)",
    "CREATE INDEX accounts_customer ON accounts (customer_id, account_id)",
    """
    CREATE TABLE saga_steps (
        saga_id uuid NOT NULL,
        name text NOT NULL,
        tenant text NOT NULL,
        customer_id uuid NOT NULL,
        operation text NOT NULL,
        idempotency_key uuid NOT NULL UNIQUE,
        compensation boolean NOT NULL,
        state text NOT NULL DEFAULT 'intended' CHECK (state IN ('intended', 'done', 'refused')),
        result jsonb,
        refusal_status integer,
        refusal_code text,
        intended_at timestamptz NOT NULL DEFAULT clock_timestamp(),
        recorded_at timestamptz,
        settled_at timestamptz,
        PRIMARY KEY (saga_id, name)
    )
    """,
    "COMMENT ON COLUMN saga_steps.settled_at IS 'when an operator had seen to a refused compensation'",
    """
    CREATE INDEX saga_steps_refused ON saga_steps (recorded_at)
        WHERE compensation AND state = 'refused' AND settled_at IS NULL
    """,
    "CREATE INDEX saga_steps_kept ON saga_steps (recorded_at)",
)


def upgrade() -> None:
    for statement in (
        *released_ddl.INBOX,
        *released_ddl.OUTBOX,
        *released_ddl.FEED_CURSOR,
        *TABLES,
    ):
        op.execute(statement)
