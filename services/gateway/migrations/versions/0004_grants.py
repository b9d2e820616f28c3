"""Partitions of nonces are made and dropped by functions of the owner; nonces are only added, and their bounds read."""

from alembic import op

revision = "0004"
down_revision = "0003"

STATEMENTS = (
    "REVOKE ALL ON alembic_version FROM gateway",
    "REVOKE UPDATE, DELETE ON nonces FROM gateway",
    "REVOKE INSERT, UPDATE, DELETE ON nonce_bounds FROM gateway",
    # Arguments beyond what any clock and window can ask for are refused: they could shut out every request, or make
    # tables without end.
    """
    CREATE FUNCTION keep_nonce_partitions(new_floor bigint, new_ceiling bigint) RETURNS void
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = gateway, pg_temp SET lock_timeout = '2s' AS $$
    DECLARE
        present double precision := extract(epoch FROM clock_timestamp());
        lowest bigint;
        first bigint;
    BEGIN
        IF coalesce(new_floor % 600 <> 0 OR new_floor NOT BETWEEN present - 86400 AND present + 43200
            OR new_ceiling % 600 <> 0 OR new_ceiling NOT BETWEEN new_floor AND present + 86400, true)
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
    "REVOKE ALL ON FUNCTION keep_nonce_partitions(bigint, bigint) FROM PUBLIC",
    "GRANT EXECUTE ON FUNCTION keep_nonce_partitions(bigint, bigint) TO gateway",
    """
    COMMENT ON FUNCTION keep_nonce_partitions(bigint, bigint) IS
    'raises the bounds, never lowers them, and makes the partitions between them'
    """,
    """
    CREATE FUNCTION drop_nonce_partitions() RETURNS void
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = gateway, pg_temp SET lock_timeout = '2s' AS $$
    DECLARE
        outdated text;
    BEGIN
        FOR outdated IN
            SELECT c.relname FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid
            WHERE i.inhparent = 'nonces'::regclass
                AND substring(c.relname FROM '[0-9]+$')::bigint < (SELECT floor FROM nonce_bounds)
            ORDER BY c.relname
        LOOP
            -- Two gateways may drop the same at once: a reader may delay it, so it takes no lock that others wait for.
            EXECUTE format('DROP TABLE IF EXISTS %I', outdated);
        END LOOP;
    END $$
    """,
    "REVOKE ALL ON FUNCTION drop_nonce_partitions() FROM PUBLIC",
    "GRANT EXECUTE ON FUNCTION drop_nonce_partitions() TO gateway",
    "COMMENT ON FUNCTION drop_nonce_partitions() IS 'drops the partitions below the floor'",
)


def upgrade() -> None:
    for statement in STATEMENTS:
        op.execute(statement)
