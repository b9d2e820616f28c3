"""Held deliveries have an index; a day of events is dropped without reading all deliveries under its lock; of a deleted
subscription no callback URL is kept.
"""

from alembic import op

from libs.persistence.online import create_index

revision = "0012"
down_revision = "0011"

STATEMENTS = (
    # The function of two arguments stays for the release before. Who drops a day has looked at all deliveries, in
    # order of their ids, without a lock: under it, those that were added since are looked at. Adding one reads its
    # event, so that none is added until the transaction ends.
    """
    CREATE OR REPLACE FUNCTION drop_day_partition(parent text, day date, added_since uuid) RETURNS boolean
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = webhook_dispatcher, pg_temp SET lock_timeout = '2s' AS $$
    DECLARE
        today date := timezone('UTC', clock_timestamp());
    BEGIN
        IF coalesce(parent NOT IN ('event', 'attempt') OR day >= today - 30, true) THEN
            RAISE invalid_parameter_value USING MESSAGE = 'what is 30 days old or younger is kept';
        END IF;
        IF parent = 'event' THEN
            LOCK TABLE ONLY event IN ACCESS EXCLUSIVE MODE;
            IF EXISTS (SELECT FROM delivery WHERE id > added_since AND event_day = day) THEN
                RETURN false;
            END IF;
        END IF;
        EXECUTE format('DROP TABLE IF EXISTS %I', parent || '_' || to_char(day, 'YYYYMMDD'));
        RETURN true;
    END $$
    """,
    "REVOKE ALL ON FUNCTION drop_day_partition(text, date, uuid) FROM PUBLIC",
    "GRANT EXECUTE ON FUNCTION drop_day_partition(text, date, uuid) TO webhook_dispatcher",
    "UPDATE subscription SET callback_url = '', description = '' WHERE status = 'deleted' AND callback_url <> ''",
    (
        "COMMENT ON FUNCTION drop_day_partition(text, date, uuid) IS"
        " 'false: of events of the day there are deliveries whose id is greater than the last argument'"
    ),
)


def upgrade() -> None:
    for statement in STATEMENTS:
        op.execute(statement)
    create_index("delivery_held", "delivery", "(subscription_id, id) WHERE state = 'held'")
