"""The bank: identity records, core customers, accounts, the ledger, feeds and idempotency records."""

from alembic import op

revision = "0001"
down_revision = None

STATEMENTS = (
    # What every API has.
    """
    CREATE TABLE idempotency_record (
        api text NOT NULL,
        key text NOT NULL,
        operation text NOT NULL,
        fingerprint bytea NOT NULL,
        status integer,
        body text,
        created_at timestamptz NOT NULL DEFAULT now(),
        PRIMARY KEY (api, key)
    )
    """,
    """
    CREATE TABLE feed (
        api text PRIMARY KEY CHECK (api IN ('identity', 'financial')),
        position bigint NOT NULL DEFAULT 0
    )
    """,
    "INSERT INTO feed (api) VALUES ('identity'), ('financial')",
    """
    CREATE TABLE feed_event (
        api text NOT NULL REFERENCES feed,
        position bigint NOT NULL,
        type text NOT NULL,
        occurred_at timestamptz NOT NULL,
        content text NOT NULL,
        PRIMARY KEY (api, position)
    )
    """,
    # The identity provider.
    """
    CREATE TABLE identity_record (
        identity_id text PRIMARY KEY,
        customer_id text NOT NULL,
        business_customer_id text,
        kind text NOT NULL CHECK (kind IN ('business', 'person')),
        fields jsonb NOT NULL,
        status text NOT NULL CHECK (status IN
            ('approved', 'pending_review', 'awaiting_documents', 'denied', 'canceled')),
        version integer NOT NULL DEFAULT 1
    )
    """,
    "CREATE INDEX identity_record_customer ON identity_record (customer_id)",
    # Core banking.
    """
    CREATE TABLE core_customer (
        core_id text PRIMARY KEY,
        customer_id text NOT NULL,
        business_customer_id text,
        kind text NOT NULL CHECK (kind IN ('business', 'person')),
        fields jsonb NOT NULL,
        status text NOT NULL DEFAULT 'active' CHECK (status IN ('active', 'closed'))
    )
    """,
    "CREATE INDEX core_customer_customer ON core_customer (customer_id)",
    """
    CREATE TABLE external_account (
        external_account_id text PRIMARY KEY,
        sequence bigint NOT NULL GENERATED ALWAYS AS IDENTITY,
        core_id text NOT NULL REFERENCES core_customer,
        bank_name text NOT NULL,
        name_on_account text NOT NULL,
        routing_number text NOT NULL,
        account_number text NOT NULL,
        address_on_account jsonb NOT NULL,
        is_primary boolean NOT NULL,
        status text NOT NULL DEFAULT 'open' CHECK (status IN ('open', 'closed')),
        CHECK (status = 'open' OR NOT is_primary)
    )
    """,
    "CREATE INDEX external_account_core ON external_account (core_id)",
    "CREATE UNIQUE INDEX external_account_primary ON external_account (core_id) WHERE is_primary",
    """
    CREATE UNIQUE INDEX external_account_linked
        ON external_account (core_id, routing_number, account_number) WHERE status = 'open'
    """,
    # The ledger. The bank's own accounts have no row in `account`: their balances are sums.
    """
    CREATE TABLE ledger_account (
        ledger_account_id text PRIMARY KEY,
        owner text NOT NULL CHECK (owner IN ('bank', 'customer'))
    )
    """,
    "INSERT INTO ledger_account (ledger_account_id, owner) VALUES ('bank:cash', 'bank')",
    "CREATE SEQUENCE account_number START 400100000001 MAXVALUE 999999999999",
    """
    CREATE TABLE account (
        account_id text PRIMARY KEY REFERENCES ledger_account,
        account_number text NOT NULL UNIQUE DEFAULT nextval('account_number')::text,
        core_id text NOT NULL REFERENCES core_customer,
        account_group text NOT NULL CHECK (account_group IN ('deposit', 'reserve')),
        account_title text NOT NULL,
        status text NOT NULL DEFAULT 'open' CHECK (status IN ('pending', 'open', 'closed')),
        is_restricted boolean NOT NULL DEFAULT false,
        closed_at timestamptz,
        interest_earned_year_to_date numeric(20, 2) NOT NULL DEFAULT 0,
        annual_percentage_yield_earned numeric(8, 2) NOT NULL DEFAULT 0,
        total numeric(30, 2) NOT NULL DEFAULT 0,
        held numeric(30, 2) NOT NULL DEFAULT 0 CHECK (held >= 0),
        CHECK ((status = 'closed') = (closed_at IS NOT NULL))
    ) WITH (fillfactor = 70)
    """,
    "CREATE INDEX account_core ON account (core_id)",
    """
    CREATE VIEW account_of_customer AS
        SELECT account.*, owner.customer_id, owner.fields->>'business_name' AS name,
            owner.fields->>'dba' AS dba_name
        FROM account JOIN core_customer AS owner USING (core_id)
    """,
    """
    CREATE TABLE journal_entry (
        transaction_id text PRIMARY KEY,
        type text NOT NULL CHECK (type IN
            ('deposit', 'withdrawal', 'wire', 'ach', 'fee', 'interest', 'return')),
        counterparty_name text NOT NULL,
        settled_at timestamptz NOT NULL
    )
    """,
    """
    CREATE TABLE posting (
        posting_id uuid PRIMARY KEY DEFAULT gen_random_uuid(),
        sequence bigint NOT NULL GENERATED ALWAYS AS IDENTITY,
        transaction_id text NOT NULL REFERENCES journal_entry,
        ledger_account_id text NOT NULL REFERENCES ledger_account,
        amount numeric(20, 2) NOT NULL CHECK (amount <> 0)
    )
    """,
    "CREATE INDEX posting_transaction ON posting (transaction_id)",
    "CREATE INDEX posting_account ON posting (ledger_account_id, sequence)",
    """
    CREATE FUNCTION move_totals() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
        UPDATE account SET total = account.total + moved.amount
        FROM (SELECT ledger_account_id, sum(amount) AS amount FROM added GROUP BY 1) AS moved
        WHERE account.account_id = moved.ledger_account_id;
        RETURN NULL;
    END $$
    """,
    """
    CREATE TRIGGER posting_moves_totals AFTER INSERT ON posting
        REFERENCING NEW TABLE AS added FOR EACH STATEMENT EXECUTE FUNCTION move_totals()
    """,
    """
    CREATE FUNCTION entry_balances() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
        IF (SELECT count(*) < 2 OR sum(amount) <> 0 FROM posting
            WHERE transaction_id = NEW.transaction_id) THEN
            RAISE EXCEPTION 'entry % does not balance', NEW.transaction_id
                USING ERRCODE = 'integrity_constraint_violation';
        END IF;
        RETURN NULL;
    END $$
    """,
    """
    CREATE CONSTRAINT TRIGGER journal_entry_balances AFTER INSERT ON journal_entry
        DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION entry_balances()
    """,
    """
    CREATE CONSTRAINT TRIGGER posting_balances AFTER INSERT ON posting
        DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION entry_balances()
    """,
    """
    CREATE FUNCTION refuse_change() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
        RAISE EXCEPTION 'what is posted is never changed'
            USING ERRCODE = 'integrity_constraint_violation';
    END $$
    """,
    """
    CREATE TRIGGER journal_entry_is_final BEFORE UPDATE OR DELETE ON journal_entry
        FOR EACH ROW EXECUTE FUNCTION refuse_change()
    """,
    """
    CREATE TRIGGER posting_is_final BEFORE UPDATE OR DELETE ON posting
        FOR EACH ROW EXECUTE FUNCTION refuse_change()
    """,
)


def upgrade() -> None:
    for statement in STATEMENTS:
        op.execute(statement)
