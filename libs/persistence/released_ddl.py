"""Statements of released revisions on the tables that services have in common. The revisions import them from here.

They are never edited: databases exist that were made with them. `tables` has the schema of today. A change of it is a
new revision with statements of its own.
"""

from __future__ import annotations

INBOX = (
    """
    CREATE TABLE inbox (
        command_id uuid PRIMARY KEY,
        sequence bigint GENERATED ALWAYS AS IDENTITY,
        operation text NOT NULL,
        ordering_key text,
        message_id text NOT NULL,
        request_id text NOT NULL,
        principal bytea NOT NULL,
        body bytea NOT NULL,
        body_hash text,
        reply_to text,
        deadline double precision NOT NULL,
        attempts integer NOT NULL DEFAULT 0,
        lease uuid,
        lease_until timestamptz,
        due_at timestamptz NOT NULL DEFAULT clock_timestamp(),
        last_error text,
        accepted_at timestamptz NOT NULL DEFAULT clock_timestamp(),
        finished_at timestamptz,
        keep_for_ever boolean NOT NULL DEFAULT false,
        reply bytea,
        forgotten boolean NOT NULL DEFAULT false,
        forgotten_messages text[] NOT NULL DEFAULT '{}'
    )
    """,
    "CREATE INDEX inbox_due ON inbox (due_at) WHERE finished_at IS NULL",
    """
    CREATE INDEX inbox_order ON inbox (ordering_key, sequence)
    WHERE finished_at IS NULL AND ordering_key IS NOT NULL
    """,
    """
    CREATE INDEX inbox_kept ON inbox (finished_at) WHERE finished_at IS NOT NULL AND (forgotten OR NOT keep_for_ever)
    """,
)

INBOX_PARKING = (
    """
    ALTER TABLE inbox
        ADD COLUMN faults integer NOT NULL DEFAULT 0,
        ADD COLUMN parked_at timestamptz,
        ADD COLUMN parked_because text,
        ADD COLUMN abandoned_by text,
        ADD COLUMN abandoned_because text,
        ADD COLUMN forgetting boolean NOT NULL DEFAULT false
    """,
    "COMMENT ON COLUMN inbox.faults IS 'drives in a row that ended by a fault of ours'",
    (
        "COMMENT ON COLUMN inbox.forgetting IS"
        " 'nothing was started and the caller may have been told so; not driven until that is known'"
    ),
)
"""Columns that were added to `INBOX` later."""

OUTBOX = (
    """
    CREATE TABLE outbox (
        id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
        event_id text NOT NULL UNIQUE,
        type text NOT NULL,
        tenant text NOT NULL,
        customer_id text NOT NULL,
        resource_id text NOT NULL,
        sequence bigint NOT NULL,
        body bytea NOT NULL,
        recorded_at timestamptz NOT NULL DEFAULT now()
    )
    """,
)

OUTBOX_UNROUTABLE = (
    """
    CREATE TABLE outbox_unroutable (
        id bigint PRIMARY KEY,
        event_id text NOT NULL UNIQUE,
        type text NOT NULL,
        tenant text NOT NULL,
        customer_id text NOT NULL,
        resource_id text NOT NULL,
        sequence bigint NOT NULL,
        body bytea NOT NULL,
        recorded_at timestamptz NOT NULL,
        set_aside_at timestamptz NOT NULL DEFAULT clock_timestamp()
    )
    """,
    "CREATE INDEX outbox_unroutable_aggregate ON outbox_unroutable (tenant, resource_id, id)",
)

LEADER_LEASE = (
    """
    CREATE TABLE leader_lease (
        name text PRIMARY KEY,
        term bigint NOT NULL,
        holder uuid NOT NULL,
        lease_until timestamptz NOT NULL,
        UNIQUE (name, term)
    )
    """,
)

FEED_CURSOR = ("CREATE TABLE feed_cursor (feed text PRIMARY KEY, position bigint NOT NULL)",)

FEED_CURSOR_STATE = ("ALTER TABLE feed_cursor ADD COLUMN state text",)
"""A column that was added to `FEED_CURSOR` later."""

FEED_STOPS = (
    """
    CREATE TABLE feed_stop (
        feed text PRIMARY KEY,
        position bigint NOT NULL,
        entry_position bigint,
        entry_type text,
        error text NOT NULL,
        outline text,
        since timestamptz NOT NULL DEFAULT clock_timestamp(),
        tried_at timestamptz NOT NULL DEFAULT clock_timestamp(),
        tries bigint NOT NULL DEFAULT 1
    )
    """,
    """
    CREATE TABLE feed_skip (
        feed text NOT NULL,
        position bigint NOT NULL,
        reason text NOT NULL,
        asked_by text NOT NULL,
        asked_at timestamptz NOT NULL DEFAULT clock_timestamp(),
        entry_type text,
        error text NOT NULL,
        outline text,
        skipped_at timestamptz,
        PRIMARY KEY (feed, position)
    )
    """,
)

FEED_EVENTS = (
    """
    CREATE TABLE feed_event (
        feed text NOT NULL,
        event_id text NOT NULL,
        position bigint NOT NULL,
        PRIMARY KEY (feed, event_id)
    )
    """,
    "CREATE INDEX feed_event_position ON feed_event (feed, position)",
)

DATABASE_LIFE = (
    """
    CREATE TABLE database_life (
        started_at timestamptz PRIMARY KEY,
        first_seen_at timestamptz NOT NULL DEFAULT clock_timestamp(),
        last_seen_at timestamptz NOT NULL DEFAULT clock_timestamp(),
        checked_at timestamptz,
        missing_records text[] NOT NULL DEFAULT '{}',
        closed_at timestamptz,
        closed_by text,
        reason text
    )
    """,
    "COMMENT ON COLUMN database_life.started_at IS 'pg_postmaster_start_time()'",
    "COMMENT ON COLUMN database_life.first_seen_at IS 'no earlier life was written to after this'",
    "COMMENT ON COLUMN database_life.last_seen_at IS 'the newest one tells when a restored database was backed up'",
    "COMMENT ON COLUMN database_life.missing_records IS 'what a provider holds of ours and this database lacked'",
    """
    CREATE INDEX database_life_open ON database_life (started_at)
    WHERE missing_records <> '{}' AND closed_at IS NULL
    """,
    """
    CREATE FUNCTION lost_history_seconds() RETURNS double precision LANGUAGE sql VOLATILE AS $$
        SELECT CASE WHEN
            EXISTS (SELECT FROM database_life WHERE started_at = pg_postmaster_start_time()
                AND checked_at IS NOT NULL)
            AND NOT EXISTS (SELECT FROM database_life WHERE missing_records <> '{}' AND closed_at IS NULL)
        THEN NULL ELSE coalesce((
            SELECT extract(epoch FROM clock_timestamp() - first_seen_at)::double precision
            FROM database_life WHERE started_at = pg_postmaster_start_time()), 0) END
    $$
    """,
    """
    COMMENT ON FUNCTION lost_history_seconds() IS
    'null: nothing is missing; else a write that is unknown here was sent at least so long ago'
    """,
    """
    CREATE FUNCTION lost_history_began_seconds() RETURNS double precision LANGUAGE sql VOLATILE AS $$
        SELECT coalesce(extract(epoch FROM clock_timestamp() - max(trusted.last_seen_at)), 'infinity')
            ::double precision
        FROM database_life trusted
        WHERE trusted.checked_at IS NOT NULL AND trusted.started_at <> pg_postmaster_start_time()
            -- The present life has no row until it is seen for the first time.
            AND trusted.first_seen_at < coalesce((
                SELECT min(doubted.first_seen_at) FROM database_life doubted
                WHERE doubted.checked_at IS NULL AND doubted.started_at = pg_postmaster_start_time()
                    OR doubted.missing_records <> '{}' AND doubted.closed_at IS NULL), 'infinity')
    $$
    """,
    """
    COMMENT ON FUNCTION lost_history_began_seconds() IS
    'while something may be missing: a write that is unknown here was sent at most so long ago'
    """,
    # What is older than this table was committed by the life that makes it.
    """
    INSERT INTO database_life (started_at, checked_at)
    VALUES (pg_postmaster_start_time(), clock_timestamp())
    """,
)

DATABASE_LIFE_REPORTS = (
    "ALTER TABLE database_life ADD COLUMN report_due_at timestamptz",
    "COMMENT ON COLUMN database_life.report_due_at IS 'when a process reports the case next; null: it need not'",
)
"""A column that was added to `DATABASE_LIFE` later."""

DATABASE_LIFE_READINGS = (
    """
    ALTER TABLE database_life
        ADD COLUMN process_ahead interval,
        ADD COLUMN put_off_by interval,
        ADD COLUMN put_off_after timestamptz
    """,
    (
        "COMMENT ON COLUMN database_life.process_ahead IS"
        " 'by how much the clock of the process that saw it last was ahead of the database''s'"
    ),
    (
        "COMMENT ON COLUMN database_life.put_off_by IS"
        " 'so much too late are open commands that are due after put_off_after; null: none are'"
    ),
    # A reading of an earlier server whose clock was far ahead and that was replaced since: it tells no setback of now.
    """
    UPDATE database_life SET last_seen_at = least(last_seen_at, clock_timestamp())
    WHERE started_at <> pg_postmaster_start_time()
    """,
)
"""Others: see `libs.persistence.clock_setbacks`."""

INBOX_TENANT = "ALTER TABLE inbox ADD COLUMN tenant text NOT NULL DEFAULT ''"

AUDIT = (
    """
    CREATE TABLE audit (
        day date NOT NULL,
        number bigint NOT NULL,
        entry text NOT NULL,
        previous bytea NOT NULL,
        hash bytea NOT NULL,
        PRIMARY KEY (day, number)
    )
    """,
    "CREATE TABLE audit_turn (only_row boolean PRIMARY KEY DEFAULT true CHECK (only_row))",
    "INSERT INTO audit_turn DEFAULT VALUES",
    """
    CREATE FUNCTION follow_the_audit() RETURNS trigger LANGUAGE plpgsql AS $$
    DECLARE
        last record;
    BEGIN
        SELECT day, number, hash INTO last FROM audit ORDER BY day DESC, number DESC LIMIT 1;
        IF NEW.previous <> coalesce(last.hash, decode(repeat('00', 32), 'hex'))
            OR NEW.number <> (CASE WHEN NEW.day = last.day THEN last.number + 1 ELSE 1 END)
            OR NEW.day < last.day
            OR NEW.day IS DISTINCT FROM last.day AND NEW.day > (clock_timestamp() AT TIME ZONE 'UTC')::date
            OR NEW.hash <> sha256(NEW.previous || convert_to(NEW.day || ':' || NEW.number || ':' || NEW.entry, 'UTF8'))
        THEN
            RAISE integrity_constraint_violation USING MESSAGE = 'the row does not follow the last one of the audit';
        END IF;
        RETURN NEW;
    END $$
    """,
    """
    CREATE TRIGGER audit_follows BEFORE INSERT ON audit FOR EACH ROW EXECUTE FUNCTION follow_the_audit()
    """,
)
"""Its revisions then revoke UPDATE and DELETE on `audit`, and INSERT and DELETE on `audit_turn`."""

FEED_STOP_EVENTS = (
    "ALTER TABLE feed_stop ADD COLUMN IF NOT EXISTS event_id text",
    "ALTER TABLE feed_skip ADD COLUMN IF NOT EXISTS event_id text",
    "COMMENT ON COLUMN feed_skip.event_id IS 'null where entries have none, and of earlier releases'",
)

KEY_CHECK = (
    """
    CREATE TABLE key_check (
        ring text NOT NULL,
        key_id text NOT NULL,
        check_value bytea NOT NULL,
        first_seen_at timestamptz NOT NULL DEFAULT clock_timestamp(),
        PRIMARY KEY (ring, key_id)
    )
    """,
)
