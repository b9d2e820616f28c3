"""The whole ledger: pages of transactions, interest, ACH requests, statements, sweep loads, settlement calculations."""

from alembic import op

revision = "0002"
down_revision = "0001"

STATEMENTS = (
    """
    INSERT INTO ledger_account (ledger_account_id, owner)
        VALUES ('bank:fees', 'bank'), ('bank:interest', 'bank')
    """,
    # One counterparty has one id, whoever deals with it.
    """
    ALTER TABLE journal_entry ADD COLUMN counterparty_id text NOT NULL
        GENERATED ALWAYS AS ('cpt_' || md5(counterparty_name)) STORED
    """,
    # A posting carries its entry's time, so that an account's postings are read in order from one index.
    "ALTER TABLE posting ADD COLUMN settled_at timestamptz",
    "ALTER TABLE posting DISABLE TRIGGER posting_is_final",
    """
    UPDATE posting SET settled_at = journal_entry.settled_at
    FROM journal_entry WHERE journal_entry.transaction_id = posting.transaction_id
    """,
    "ALTER TABLE posting ENABLE TRIGGER posting_is_final",
    "ALTER TABLE posting ALTER COLUMN settled_at SET NOT NULL",
    "DROP INDEX posting_transaction",
    "DROP INDEX posting_account",
    "CREATE UNIQUE INDEX posting_of_entry ON posting (transaction_id, ledger_account_id)",
    "CREATE INDEX posting_settled ON posting (ledger_account_id, settled_at, transaction_id)",
    # An entry's postings are written by one statement and checked when it ends, all of its entries together: row by
    # row at the commit, 100,000 of them would cost more than writing them. That an entry has postings is seen at the
    # commit as before.
    "DROP TRIGGER posting_balances ON posting",
    """
    CREATE FUNCTION entries_balance() RETURNS trigger LANGUAGE plpgsql AS $$
    DECLARE
        wrong text;
    BEGIN
        SELECT transaction_id INTO wrong
        FROM posting JOIN journal_entry AS entry USING (transaction_id)
        WHERE transaction_id IN (SELECT transaction_id FROM added)
        GROUP BY transaction_id
        HAVING count(*) < 2 OR sum(amount) <> 0 OR bool_or(posting.settled_at <> entry.settled_at) LIMIT 1;
        IF FOUND THEN
            RAISE EXCEPTION 'entry % does not balance', wrong USING ERRCODE = 'integrity_constraint_violation';
        END IF;
        RETURN NULL;
    END $$
    """,
    """
    CREATE TRIGGER postings_balance AFTER INSERT ON posting
        REFERENCING NEW TABLE AS added FOR EACH STATEMENT EXECUTE FUNCTION entries_balance()
    """,
    # How many postings a customer's account has per day in New York, and per five minutes: a page is found by adding
    # these up instead of by reading over the postings before it. The amounts give the balance at the end of a day.
    """
    CREATE TABLE posting_day (
        account_id text NOT NULL REFERENCES account,
        day date NOT NULL,
        postings integer NOT NULL,
        amount numeric(30, 2) NOT NULL,
        PRIMARY KEY (account_id, day)
    ) WITH (fillfactor = 70)
    """,
    """
    CREATE TABLE posting_slot (
        account_id text NOT NULL REFERENCES account,
        slot timestamptz NOT NULL,
        postings integer NOT NULL,
        PRIMARY KEY (account_id, slot)
    ) WITH (fillfactor = 70)
    """,
    """
    CREATE TABLE interest_earned (
        account_id text NOT NULL REFERENCES account,
        year integer NOT NULL,
        amount numeric(30, 2) NOT NULL,
        PRIMARY KEY (account_id, year)
    )
    """,
    """
    CREATE FUNCTION bank_day(moment timestamptz) RETURNS date LANGUAGE sql STABLE
        RETURN (moment AT TIME ZONE 'America/New_York')::date
    """,
    """
    CREATE FUNCTION bank_midnight(day date) RETURNS timestamptz LANGUAGE sql STABLE
        RETURN day::timestamp AT TIME ZONE 'America/New_York'
    """,
    """
    CREATE FUNCTION posting_slot_of(moment timestamptz) RETURNS timestamptz LANGUAGE sql STABLE
        RETURN date_bin('5 minutes', moment, '2000-01-01Z')
    """,
    """
    INSERT INTO posting_day (account_id, day, postings, amount)
    SELECT account_id, bank_day(settled_at), count(*), sum(amount)
    FROM posting JOIN account ON account_id = ledger_account_id GROUP BY 1, 2
    """,
    """
    INSERT INTO posting_slot (account_id, slot, postings)
    SELECT account_id, posting_slot_of(settled_at), count(*)
    FROM posting JOIN account ON account_id = ledger_account_id GROUP BY 1, 2
    """,
    """
    CREATE FUNCTION count_postings() RETURNS trigger LANGUAGE plpgsql AS $$
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
        SELECT account_id, extract(year FROM bank_day(added.settled_at)), sum(amount)
        FROM added JOIN account ON account_id = ledger_account_id
            JOIN journal_entry AS entry USING (transaction_id)
        WHERE entry.type = 'interest' GROUP BY 1, 2 ORDER BY 1, 2
        ON CONFLICT (account_id, year) DO UPDATE SET amount = earned.amount + excluded.amount;
        RETURN NULL;
    END $$
    """,
    """
    CREATE TRIGGER posting_is_counted AFTER INSERT ON posting
        REFERENCING NEW TABLE AS added FOR EACH STATEMENT EXECUTE FUNCTION count_postings()
    """,
    # The settings keep every plan on the index in its order: a plan is kept as long as its session, and one that was
    # made when the table was small would sort 100,000 rows.
    """
    CREATE FUNCTION transaction_page(of_account text, first_day date, last_day date, skip bigint, size integer)
    RETURNS TABLE (total bigint, posting_id uuid, transaction_id text, settled_at timestamptz, amount numeric)
    LANGUAGE plpgsql STABLE
    SET enable_seqscan = off SET enable_bitmapscan = off SET enable_sort = off SET jit = off AS $$
    #variable_conflict use_column
    DECLARE
        since timestamptz := '-infinity';
        before timestamptz;
        page_day date;
    BEGIN
        SELECT coalesce(max(through), 0), max(day) FILTER (WHERE through > skip),
            skip - coalesce(max(through) FILTER (WHERE through <= skip), 0)
        INTO total, page_day, skip FROM (
            SELECT day, sum(postings) OVER (ORDER BY day DESC) AS through FROM posting_day
            WHERE account_id = of_account
                AND day BETWEEN coalesce(first_day, '-infinity') AND coalesce(last_day, 'infinity')
        ) AS days;
        SELECT max(slot) FILTER (WHERE through > skip) + interval '5 minutes',
            skip - coalesce(max(through) FILTER (WHERE through <= skip), 0)
        INTO before, skip FROM (
            SELECT slot, sum(postings) OVER (ORDER BY slot DESC) AS through FROM posting_slot
            WHERE account_id = of_account
                AND slot >= bank_midnight(page_day) AND slot < bank_midnight(page_day + 1)
        ) AS slots;
        IF first_day IS NOT NULL THEN
            since := bank_midnight(first_day);
        END IF;
        RETURN QUERY SELECT total, page.* FROM (VALUES (true)) AS always LEFT JOIN LATERAL (
            SELECT posting.posting_id, posting.transaction_id, posting.settled_at, posting.amount FROM posting
            WHERE ledger_account_id = of_account
                AND posting.settled_at < before AND posting.settled_at >= since
            ORDER BY posting.settled_at DESC, posting.transaction_id DESC OFFSET skip LIMIT size
        ) AS page ON true;
    END $$
    """,
    # What an account has earned follows from its postings. The yield is Regulation DD's, appendix A, part II:
    # 100 * ((1 + interest / average daily balance) ^ (365 / days) - 1), over the year to date.
    """
    CREATE FUNCTION yield_earned(of_account text, interest numeric, today date) RETURNS numeric
    LANGUAGE plpgsql STABLE AS $$
    DECLARE
        first_day date;
        days integer;
        average numeric;
    BEGIN
        SELECT greatest(min(day), date_trunc('year', today)::date) INTO first_day
        FROM posting_day WHERE account_id = of_account;
        days := today - first_day + 1;
        SELECT sum(amount * (today - greatest(day, first_day) + 1)) / days INTO average
        FROM posting_day WHERE account_id = of_account AND day <= today;
        IF average IS NULL OR average <= 0 OR interest <= 0 THEN
            RETURN 0;
        END IF;
        IF ln(1 + interest / average) * 365 / days > 4.6 THEN
            RETURN 9999.99;
        END IF;
        RETURN round(100 * (power(1 + interest / average, 365.0 / days) - 1), 2);
    END $$
    """,
    "DROP VIEW account_of_customer",
    """
    ALTER TABLE account
        DROP COLUMN interest_earned_year_to_date,
        DROP COLUMN annual_percentage_yield_earned,
        ADD COLUMN reserve_account_id text REFERENCES account,
        ADD CONSTRAINT account_never_overdrawn CHECK (total >= held)
    """,
    """
    CREATE VIEW account_of_customer AS
        SELECT account.*, owner.customer_id, owner.fields->>'business_name' AS name,
            owner.fields->>'dba' AS dba_name,
            coalesce(earned.amount, 0) AS interest_earned_year_to_date,
            CASE WHEN earned.amount IS NULL THEN 0
                ELSE yield_earned(account.account_id, earned.amount, bank_day(now())) END
                AS annual_percentage_yield_earned
        FROM account JOIN core_customer AS owner USING (core_id)
            LEFT JOIN interest_earned AS earned
                ON earned.account_id = account.account_id AND earned.year = extract(year FROM bank_day(now()))
    """,
    """
    CREATE TABLE ach_request (
        reference_id text PRIMARY KEY,
        account_id text NOT NULL REFERENCES account,
        amount numeric(20, 2) NOT NULL CHECK (amount > 0),
        status text NOT NULL DEFAULT 'pending'
            CHECK (status IN ('pending', 'submitted', 'settled', 'returned')),
        return_code text,
        return_description text,
        created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
        updated_at timestamptz NOT NULL DEFAULT clock_timestamp(),
        CHECK ((status = 'returned') = (return_code IS NOT NULL)),
        CHECK ((return_code IS NULL) = (return_description IS NULL))
    )
    """,
    "CREATE INDEX ach_request_account ON ach_request (account_id, created_at, reference_id)",
    """
    CREATE TABLE statement (
        statement_id text PRIMARY KEY,
        account_id text NOT NULL REFERENCES account,
        start_date date NOT NULL,
        end_date date NOT NULL,
        generated_at timestamptz NOT NULL DEFAULT clock_timestamp(),
        UNIQUE (account_id, start_date)
    )
    """,
    """
    CREATE TABLE deposit_load (
        account_id text NOT NULL REFERENCES account,
        load_date date NOT NULL,
        balance numeric(30, 2) NOT NULL CHECK (balance >= 0),
        locations integer NOT NULL CHECK (locations >= 0),
        PRIMARY KEY (account_id, load_date)
    )
    """,
    """
    CREATE TABLE deposit_location (
        account_id text NOT NULL,
        load_date date NOT NULL,
        location_id integer NOT NULL,
        balance numeric(30, 2) NOT NULL CHECK (balance > 0),
        PRIMARY KEY (account_id, load_date, location_id),
        FOREIGN KEY (account_id, load_date) REFERENCES deposit_load
    )
    """,
    """
    CREATE TABLE settlement_calculation (
        calculation_id bigint PRIMARY KEY GENERATED ALWAYS AS IDENTITY,
        account_id text NOT NULL REFERENCES account,
        settlement_date date NOT NULL,
        amount numeric(20, 2) NOT NULL,
        ach_file text,
        source text,
        created_at timestamptz NOT NULL DEFAULT clock_timestamp()
    )
    """,
    """
    CREATE INDEX settlement_calculation_account
        ON settlement_calculation (account_id, settlement_date, created_at, calculation_id)
    """,
)


def upgrade() -> None:
    for statement in STATEMENTS:
        op.execute(statement)
