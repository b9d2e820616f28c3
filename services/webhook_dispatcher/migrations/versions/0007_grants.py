"""Partitions are made and dropped by functions of the owner; events and attempts are only added."""

from alembic import op

revision = "0007"
down_revision = "0006"

STATEMENTS = (
    "REVOKE ALL ON alembic_version FROM webhook_dispatcher",
    "REVOKE UPDATE, DELETE ON event, attempt FROM webhook_dispatcher",
    # A day that is far from today is refused: tables could be made without end.
    """
    CREATE FUNCTION make_day_partition(parent text, day date) RETURNS void
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = webhook_dispatcher, pg_temp SET lock_timeout = '2s' AS $$
    DECLARE
        today date := timezone('UTC', clock_timestamp());
        partition text := parent || '_' || to_char(day, 'YYYYMMDD');
    BEGIN
        IF coalesce(parent NOT IN ('event', 'attempt') OR day NOT BETWEEN today - 400 AND today + 400, true) THEN
            RAISE invalid_parameter_value USING MESSAGE = 'there is no partition for this table and day';
        END IF;
        PERFORM pg_advisory_xact_lock(hashtext('webhook_dispatcher'), hashtext('partitions'));
        IF to_regclass(partition) IS NULL THEN
            -- Attaching an existing table, unlike creating one in place, lets inserts go on.
            EXECUTE format('CREATE TABLE %I (LIKE %I INCLUDING CONSTRAINTS)', partition, parent);
            EXECUTE format('REVOKE ALL ON %I FROM webhook_dispatcher', partition);
            EXECUTE format('ALTER TABLE %I ATTACH PARTITION %I FOR VALUES FROM (%L) TO (%L)',
                parent, partition, day, day + 1);
        END IF;
    END $$
    """,
    "REVOKE ALL ON FUNCTION make_day_partition(text, date) FROM PUBLIC",
    "GRANT EXECUTE ON FUNCTION make_day_partition(text, date) TO webhook_dispatcher",
    "COMMENT ON FUNCTION make_day_partition(text, date) IS 'unless there is one'",
    # No delivery is added until the transaction ends: adding one reads its event, and the table is locked.
    """
    CREATE FUNCTION drop_day_partition(parent text, day date) RETURNS boolean
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = webhook_dispatcher, pg_temp SET lock_timeout = '2s' AS $$
    DECLARE
        today date := timezone('UTC', clock_timestamp());
    BEGIN
        IF coalesce(parent NOT IN ('event', 'attempt') OR day >= today - 30, true) THEN
            RAISE invalid_parameter_value USING MESSAGE = 'what is 30 days old or younger is kept';
        END IF;
        IF parent = 'event' THEN
            LOCK TABLE ONLY event IN ACCESS EXCLUSIVE MODE;
            IF EXISTS (SELECT FROM delivery WHERE event_day = day) THEN
                RETURN false;
            END IF;
        END IF;
        EXECUTE format('DROP TABLE IF EXISTS %I', parent || '_' || to_char(day, 'YYYYMMDD'));
        RETURN true;
    END $$
    """,
    "REVOKE ALL ON FUNCTION drop_day_partition(text, date) FROM PUBLIC",
    "GRANT EXECUTE ON FUNCTION drop_day_partition(text, date) TO webhook_dispatcher",
    "COMMENT ON FUNCTION drop_day_partition(text, date) IS 'false: there are deliveries of events of the day'",
)


def upgrade() -> None:
    for statement in STATEMENTS:
        op.execute(statement)
