"""Since when an endpoint is in its state and what failed last; indexes of operators' lists."""

from alembic import op

from libs.persistence.online import create_index, create_partitioned_index

revision = "0009"
down_revision = "0008"

STATEMENTS = (
    "ALTER TABLE subscription ADD COLUMN IF NOT EXISTS unavailable_at timestamptz",
    "UPDATE subscription SET unavailable_at = updated_at WHERE status = 'unavailable' AND unavailable_at IS NULL",
    # Of those that are there it is not known: null.
    "ALTER TABLE endpoint ADD COLUMN IF NOT EXISTS state_since timestamptz",
    "ALTER TABLE endpoint ALTER COLUMN state_since SET DEFAULT clock_timestamp()",
    "ALTER TABLE endpoint ADD COLUMN IF NOT EXISTS last_failure_at timestamptz",
    "ALTER TABLE endpoint ADD COLUMN IF NOT EXISTS last_failure_status integer",
    "ALTER TABLE endpoint ADD COLUMN IF NOT EXISTS last_failure_error text",
    "COMMENT ON COLUMN endpoint.state_since IS 'since when it is healthy, slow or its circuit breaker is open'",
)
INDEXES = (
    ("subscription_listed", "subscription", "(status, id)"),
    ("subscription_of_tenant", "subscription", "(tenant, status, id)"),
    ("endpoint_open", "endpoint", "(subscription_id) WHERE open_until IS NOT NULL"),
    ("endpoint_slow", "endpoint", "(subscription_id) WHERE is_slow"),
    (
        "delivery_failing",
        "delivery",
        "(subscription_id, id DESC) WHERE state = 'pending' AND attempts_made > 0",
    ),
    # Those in flight are few, and have an index of their own.
    ("delivery_of_event", "delivery", "(event_id) WHERE claim IS NULL"),
)
PARTITIONED = (
    ("attempt_of_event", "attempt", "(event_id) WHERE concluded IS NOT NULL"),
    ("event_listed", "event", "(position)"),
    ("event_listed_by_type", "event", "(type, position)"),
    ("event_of_resource", "event", "(resource_id, position)"),
)


def upgrade() -> None:
    for statement in STATEMENTS:
        op.execute(statement)
    for index in INDEXES:
        create_index(*index)
    for index in PARTITIONED:
        create_partitioned_index(*index)
