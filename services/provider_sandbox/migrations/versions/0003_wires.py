"""Wires, and a feed of core banking's own."""

from alembic import op

revision = "0003"
down_revision = "0002"

STATEMENTS = (
    "ALTER TABLE feed DROP CONSTRAINT feed_api_check",
    "ALTER TABLE feed ADD CONSTRAINT feed_api_check CHECK (api IN ('identity', 'core', 'financial'))",
    "INSERT INTO feed (api) VALUES ('core')",
    # The transaction id is the caller's. It becomes that of the ledger's entry, so both are text.
    """
    CREATE TABLE wire (
        transaction_id text PRIMARY KEY,
        sequence bigint NOT NULL GENERATED ALWAYS AS IDENTITY,
        account_id text NOT NULL REFERENCES account,
        external_account_id text NOT NULL REFERENCES external_account,
        counterparty_name text NOT NULL,
        amount numeric(20, 2) NOT NULL CHECK (amount > 0),
        purpose text NOT NULL,
        state text NOT NULL DEFAULT 'submitted'
            CHECK (state IN ('submitted', 'completed', 'rejected', 'returned')),
        reason text,
        return_transaction_id text REFERENCES journal_entry,
        due_at timestamptz NOT NULL,
        CHECK ((state IN ('rejected', 'returned')) = (reason IS NOT NULL)),
        CHECK ((state = 'returned') = (return_transaction_id IS NOT NULL))
    ) WITH (fillfactor = 70)
    """,
    "CREATE INDEX wire_account ON wire (account_id, sequence)",
    "CREATE INDEX wire_due ON wire (due_at) WHERE state = 'submitted'",
    # Wires are booked hundreds a second. Written as joins, these two would read all entries for each statement, by a
    # plan that was made while there were few: like this there is no way but by the index, entry for entry.
    """
    CREATE OR REPLACE FUNCTION entries_balance() RETURNS trigger LANGUAGE plpgsql AS $$
    DECLARE
        wrong text;
    BEGIN
        SELECT touched.transaction_id INTO wrong
        FROM (SELECT DISTINCT transaction_id FROM added) AS touched CROSS JOIN LATERAL (
            SELECT count(*) AS postings, sum(amount) AS amount, min(settled_at) AS first, max(settled_at) AS last
            FROM posting WHERE posting.transaction_id = touched.transaction_id
        ) AS whole
        WHERE postings < 2 OR amount <> 0 OR first <> last OR first <>
            (SELECT settled_at FROM journal_entry AS entry WHERE entry.transaction_id = touched.transaction_id)
        LIMIT 1;
        IF FOUND THEN
            RAISE EXCEPTION 'entry % does not balance', wrong USING ERRCODE = 'integrity_constraint_violation';
        END IF;
        RETURN NULL;
    END $$
    """,
    """
    CREATE OR REPLACE FUNCTION count_postings() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
        INSERT INTO posting_day AS counted (account_id, day, postings, amount)
        SELECT account_id, bank_day(settled_at), count(*), sum(amount)
        FROM added JOIN account ON account_id = ledger_account_id GROUP BY 1, 2 ORDER BY 1, 2
        ON CONFLICT (account_id, day) DO UPDATE
            SET postings = counted.postings + excluded.postings, amount = counted.amount + excluded.amount;
        INSERT INTO posting_slot AS counted (account_id, slot, postings)
        SELECT account_id, posting_slot_of(settled_at), count(*)
        FROM added JOIN account ON account_id = ledger_account_id GROUP BY 1, 2 ORDER BY 1, 2
        ON CONFLICT (account_id, slot) DO UPDATE SET postings = counted.postings + excluded.postings;
        INSERT INTO interest_earned AS earned (account_id, year, amount)
        SELECT account_id, extract(year FROM bank_day(settled_at)), sum(amount)
        FROM added JOIN account ON account_id = ledger_account_id
        WHERE (SELECT type FROM journal_entry AS entry WHERE entry.transaction_id = added.transaction_id) = 'interest'
        GROUP BY 1, 2 ORDER BY 1, 2
        ON CONFLICT (account_id, year) DO UPDATE SET amount = earned.amount + excluded.amount;
        RETURN NULL;
    END $$
    """,
)


def upgrade() -> None:
    for statement in STATEMENTS:
        op.execute(statement)
