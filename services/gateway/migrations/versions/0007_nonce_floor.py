"""The floor of nonces rises no further than time goes: a stolen gateway could shut out every request for 12 hours."""

from alembic import op

revision = "0007"
down_revision = "0006"

STATEMENTS = (
    """
    CREATE FUNCTION nonce_clock() RETURNS double precision LANGUAGE sql SET search_path = gateway, pg_temp
    AS 'SELECT extract(epoch FROM clock_timestamp())::double precision'
    """,
    "REVOKE ALL ON FUNCTION nonce_clock() FROM PUBLIC",
    "COMMENT ON FUNCTION nonce_clock() IS 'seconds since 1970; tests move it'",
    # A gateway asks for a floor that is at least two minutes and the shortest window in the past, and for a ceiling an
    # hour, the longest window and a partition ahead.
    """
    CREATE OR REPLACE FUNCTION keep_nonce_partitions(new_floor bigint, new_ceiling bigint) RETURNS void
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = gateway, pg_temp SET lock_timeout = '2s' AS $$
    DECLARE
        present double precision := nonce_clock();
        lowest bigint;
        first bigint;
    BEGIN
        IF coalesce(new_floor % 600 <> 0 OR new_floor NOT BETWEEN present - 86400 AND present - 60
            OR new_ceiling % 600 <> 0 OR new_ceiling NOT BETWEEN new_floor AND present + 7200, true)
        THEN
            RAISE invalid_parameter_value USING MESSAGE = 'these are no bounds of nonces';
        END IF;
        PERFORM pg_advisory_xact_lock(1852796515);
        SELECT floor INTO STRICT lowest FROM nonce_bounds FOR UPDATE;
        lowest := greatest(lowest, new_floor);
        FOR first IN SELECT generate_series(lowest, new_ceiling - 600, 600) LOOP
            IF to_regclass('nonces_' || first) IS NULL THEN
                -- Attaching an existing table, unlike creating one in place, lets inserts go on.
                EXECUTE format('CREATE TABLE %I (LIKE nonces)', 'nonces_' || first);
                EXECUTE format('REVOKE ALL ON %I FROM gateway', 'nonces_' || first);
                EXECUTE format('ALTER TABLE nonces ATTACH PARTITION %I FOR VALUES FROM (%s) TO (%s)',
                    'nonces_' || first, first, first + 600);
            END IF;
        END LOOP;
        UPDATE nonce_bounds SET floor = lowest, ceiling = greatest(ceiling, lowest, new_ceiling)
        WHERE floor < lowest OR ceiling < greatest(lowest, new_ceiling);
    END $$
    """,
)


def upgrade() -> None:
    for statement in STATEMENTS:
        op.execute(statement)
