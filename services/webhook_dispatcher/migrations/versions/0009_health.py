"""Since when an endpoint is in its state and what failed last; indexes of operators' lists."""

from alembic import op

revision = "0009"
down_revision = "0008"

STATEMENTS = (
    "ALTER TABLE subscription ADD COLUMN unavailable_at timestamptz",
    "UPDATE subscription SET unavailable_at = updated_at WHERE status = 'unavailable'",
    # Of those that are there it is not known: null.
    "ALTER TABLE endpoint ADD COLUMN state_since timestamptz",
    "ALTER TABLE endpoint ALTER COLUMN state_since SET DEFAULT clock_timestamp()",
    "ALTER TABLE endpoint ADD COLUMN last_failure_at timestamptz",
    "ALTER TABLE endpoint ADD COLUMN last_failure_status integer",
    "ALTER TABLE endpoint ADD COLUMN last_failure_error text",
    "COMMENT ON COLUMN endpoint.state_since IS 'since when it is healthy, slow or its circuit breaker is open'",
    "CREATE INDEX subscription_listed ON subscription (status, id)",
    "CREATE INDEX subscription_of_tenant ON subscription (tenant, status, id)",
    "CREATE INDEX endpoint_open ON endpoint (subscription_id) WHERE open_until IS NOT NULL",
    "CREATE INDEX endpoint_slow ON endpoint (subscription_id) WHERE is_slow",
    """
    CREATE INDEX delivery_failing ON delivery (subscription_id, id DESC)
    WHERE state = 'pending' AND attempts_made > 0
    """,
    # Those in flight are few, and have an index of their own.
    "CREATE INDEX delivery_of_event ON delivery (event_id) WHERE claim IS NULL",
    "CREATE INDEX attempt_of_event ON attempt (event_id) WHERE concluded IS NOT NULL",
    "CREATE INDEX event_listed ON event (position)",
    "CREATE INDEX event_listed_by_type ON event (type, position)",
    "CREATE INDEX event_of_resource ON event (resource_id, position)",
)


def upgrade() -> None:
    for statement in STATEMENTS:
        op.execute(statement)
