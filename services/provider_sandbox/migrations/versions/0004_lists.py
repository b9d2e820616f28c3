"""Lists that are read page by page: every row has a sequence number, and numbers follow the order of commits."""

from alembic import op

revision = "0004"
down_revision = "0003"

LISTED = (
    "identity_record",
    "core_customer",
    "external_account",
    "account",
    "wire",
    "posting",
    "deposit_load",
)

STATEMENTS = (
    # Rows that are there already are numbered from the oldest to the newest: the ids are UUIDs of version 7.
    """
    DO $$
    DECLARE
        numbered text;
        age text;
    BEGIN
        FOR numbered, age IN VALUES ('identity_record', 'identity_id'), ('core_customer', 'core_id'),
            ('account', 'account_id'), ('deposit_load', 'load_date, account_id')
        LOOP
            EXECUTE format('ALTER TABLE %I ADD COLUMN sequence bigint', numbered);
            EXECUTE format(
                'UPDATE %1$I SET sequence = counted.number FROM'
                ' (SELECT ctid AS place, row_number() OVER (ORDER BY %2$s) AS number FROM %1$I) AS counted'
                ' WHERE %1$I.ctid = counted.place', numbered, age);
            EXECUTE format(
                'ALTER TABLE %I ALTER COLUMN sequence SET NOT NULL,'
                ' ALTER COLUMN sequence ADD GENERATED ALWAYS AS IDENTITY', numbered);
            EXECUTE format(
                'SELECT setval(pg_get_serial_sequence(%1$L, ''sequence''),'
                ' (SELECT coalesce(max(sequence), 0) + 1 FROM %1$I), false)', numbered);
        END LOOP;
    END $$
    """,
    *(
        f"CREATE UNIQUE INDEX {table}_sequence ON {table} (sequence)"
        for table in LISTED
        if table != "posting"
    ),
    # The bank's own side of each entry is in no list.
    """
    CREATE UNIQUE INDEX posting_sequence ON posting (sequence)
        WHERE ledger_account_id NOT LIKE 'bank:%'
    """,
    # An identity column numbers rows in the order of their inserts. A transaction that inserts holds its table's row
    # here from before its first number is drawn until its end, so that order is also the order of commits.
    "CREATE TABLE list_order (list text PRIMARY KEY)",
    """
    INSERT INTO list_order (list) VALUES ('identity_record'), ('core_customer'), ('external_account'),
        ('account'), ('wire'), ('posting'), ('deposit_load')
    """,
    """
    CREATE FUNCTION keep_list_order() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
        PERFORM FROM list_order WHERE list = TG_TABLE_NAME FOR NO KEY UPDATE;
        IF NOT FOUND THEN
            RAISE EXCEPTION 'list_order has no row for %', TG_TABLE_NAME;
        END IF;
        RETURN NULL;
    END $$
    """,
    *(
        f"CREATE TRIGGER {table}_keeps_list_order BEFORE INSERT ON {table}"
        " FOR EACH STATEMENT EXECUTE FUNCTION keep_list_order()"
        for table in LISTED
    ),
    # With the total in one row and moved by one statement: a reader sees both as of the same posting.
    "ALTER TABLE account ADD COLUMN last_posting bigint NOT NULL DEFAULT 0",
    """
    UPDATE account SET last_posting = posted.last_posting
    FROM (SELECT ledger_account_id, max(sequence) AS last_posting FROM posting GROUP BY 1) AS posted
    WHERE account_id = ledger_account_id
    """,
    """
    CREATE OR REPLACE FUNCTION move_totals() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
        UPDATE account SET total = account.total + moved.amount, last_posting = moved.last_posting
        FROM (
            SELECT ledger_account_id, sum(amount) AS amount, max(sequence) AS last_posting FROM added GROUP BY 1
        ) AS moved
        WHERE account.account_id = moved.ledger_account_id;
        RETURN NULL;
    END $$
    """,
    # The bank may open an account for any customer: each has a name.
    "DROP VIEW account_of_customer",
    """
    CREATE VIEW account_of_customer AS
        SELECT account.*, owner.customer_id,
            coalesce(
                owner.fields->>'business_name',
                nullif(concat_ws(' ', owner.fields->>'first_name', owner.fields->>'last_name'), ''),
                account.account_title
            ) AS name,
            owner.fields->>'dba' AS dba_name,
            coalesce(earned.amount, 0) AS interest_earned_year_to_date,
            CASE WHEN earned.amount IS NULL THEN 0
                ELSE yield_earned(account.account_id, earned.amount, bank_day(now())) END
                AS annual_percentage_yield_earned
        FROM account JOIN core_customer AS owner USING (core_id)
            LEFT JOIN interest_earned AS earned
                ON earned.account_id = account.account_id AND earned.year = extract(year FROM bank_day(now()))
    """,
)


def upgrade() -> None:
    for statement in STATEMENTS:
        op.execute(statement)
