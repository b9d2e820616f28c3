"""Subscriptions, events, deliveries and their attempts; inbox."""

from alembic import op

from libs.persistence import released_ddl

revision = "0001"
down_revision = None

TABLES = (
    """
    CREATE TABLE subscription (
        id uuid PRIMARY KEY,
        tenant text NOT NULL,
        customer_id text,
        event_type text NOT NULL,
        callback_url text NOT NULL,
        description text NOT NULL,
        status text NOT NULL CHECK (status IN ('active', 'disabled', 'unavailable', 'deleted')),
        secret bytea NOT NULL,
        previous_secret bytea,
        previous_secret_expires_at timestamptz,
        sequence bigint NOT NULL DEFAULT 0,
        created_at timestamptz NOT NULL,
        updated_at timestamptz NOT NULL,
        CHECK ((previous_secret IS NULL) = (previous_secret_expires_at IS NULL))
    )
    """,
    "COMMENT ON COLUMN subscription.customer_id IS 'null: the partner subscribed, to the events of all its customers'",
    "COMMENT ON COLUMN subscription.secret IS 'sealed, as is previous_secret'",
    "COMMENT ON COLUMN subscription.sequence IS 'of the last event about the subscription itself'",
    "CREATE INDEX subscription_owner ON subscription (tenant, customer_id, created_at) WHERE status <> 'deleted'",
    """
    CREATE TABLE endpoint (
        subscription_id uuid PRIMARY KEY REFERENCES subscription,
        unreachable_in_a_row integer NOT NULL DEFAULT 0,
        closed_until timestamptz,
        probe_seconds double precision,
        is_slow boolean NOT NULL DEFAULT false,
        last_success_at timestamptz,
        failing_since timestamptz,
        failed_events integer NOT NULL DEFAULT 0
    ) WITH (fillfactor = 50)
    """,
    "COMMENT ON TABLE endpoint IS 'how the callback URL of a subscription has been doing'",
    "COMMENT ON COLUMN endpoint.closed_until IS 'breaker: no attempt before then, and one at a time until it succeeds'",
    "COMMENT ON COLUMN endpoint.failing_since IS 'when the first event after the last success had failed for good'",
    "CREATE TABLE event_position (last bigint NOT NULL)",
    "INSERT INTO event_position VALUES (0)",
    "COMMENT ON TABLE event_position IS 'one row, locked until commit: positions are in commit order'",
    """
    CREATE TABLE event (
        day date NOT NULL,
        id uuid NOT NULL,
        position bigint NOT NULL,
        tenant text NOT NULL,
        customer_id text,
        type text NOT NULL,
        resource_id text NOT NULL,
        sequence bigint NOT NULL,
        body bytea NOT NULL,
        recorded_at timestamptz NOT NULL,
        PRIMARY KEY (day, id)
    ) PARTITION BY RANGE (day)
    """,
    "COMMENT ON COLUMN event.day IS 'UTC day of the time within the id, so that an event that comes twice is one row'",
    "COMMENT ON COLUMN event.customer_id IS 'null: of the partner itself'",
    "CREATE INDEX event_of_tenant ON event (tenant, position)",
    "CREATE INDEX event_of_customer ON event (tenant, customer_id, position)",
    "CREATE INDEX event_of_tenant_by_type ON event (tenant, type, position)",
    "CREATE INDEX event_of_customer_by_type ON event (tenant, customer_id, type, position)",
    """
    CREATE TABLE delivery (
        id uuid PRIMARY KEY,
        subscription_id uuid NOT NULL,
        tenant text NOT NULL,
        event_day date NOT NULL,
        event_id uuid NOT NULL,
        event_type text NOT NULL,
        state text NOT NULL CHECK (state IN ('pending', 'held')),
        attempts_made integer NOT NULL DEFAULT 0,
        due_at timestamptz NOT NULL,
        lease_until timestamptz,
        claim uuid,
        created_at timestamptz NOT NULL,
        CHECK ((claim IS NULL) = (lease_until IS NULL))
    ) WITH (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 5000,
        autovacuum_vacuum_insert_scale_factor = 0.1, autovacuum_analyze_scale_factor = 0.05)
    """,
    "COMMENT ON TABLE delivery IS 'only those that are not over: what is over is in attempt'",
    (
        "COMMENT ON COLUMN delivery.subscription_id IS 'no foreign key: it would lock the subscription at each insert,"
        " against whoever records an event about it'"
    ),
    "COMMENT ON COLUMN delivery.claim IS 'whoever is at it: fences what it records of it'",
    """
    CREATE INDEX delivery_due ON delivery (subscription_id, due_at)
    WHERE state = 'pending' AND claim IS NULL
    """,
    "CREATE INDEX delivery_leased ON delivery (lease_until) WHERE claim IS NOT NULL",
    "CREATE INDEX delivery_of_subscription ON delivery (subscription_id, id DESC)",
    """
    CREATE TABLE attempt (
        day date NOT NULL,
        delivery_id uuid NOT NULL,
        number integer NOT NULL,
        subscription_id uuid NOT NULL,
        event_day date NOT NULL,
        event_id uuid NOT NULL,
        event_type text NOT NULL,
        delivery_created_at timestamptz NOT NULL,
        concluded text CHECK (concluded IN ('succeeded', 'failed')),
        attempted_at timestamptz NOT NULL,
        duration_ms integer NOT NULL,
        response_status integer,
        error text,
        response_body text,
        PRIMARY KEY (day, delivery_id, number)
    ) PARTITION BY RANGE (day)
    """,
    "COMMENT ON COLUMN attempt.day IS 'UTC day of attempted_at'",
    "COMMENT ON COLUMN attempt.concluded IS 'what became of the delivery by this attempt, its last; null: tried again'",
    """
    CREATE INDEX attempt_concluding ON attempt (subscription_id, delivery_id DESC) INCLUDE (concluded)
    WHERE concluded IS NOT NULL
    """,
    "CREATE INDEX attempt_failed ON attempt (subscription_id, delivery_id DESC) WHERE concluded = 'failed'",
    """
    CREATE TABLE redelivery (
        subscription_id uuid NOT NULL REFERENCES subscription,
        event_id uuid NOT NULL,
        delivery_id uuid NOT NULL,
        created_at timestamptz NOT NULL,
        PRIMARY KEY (subscription_id, event_id, delivery_id)
    )
    """,
    "CREATE INDEX redelivery_kept ON redelivery (created_at)",
    "COMMENT ON TABLE redelivery IS 'deliveries of an event beyond its first: how a success after a failure is found'",
    """
    CREATE TABLE outcome (
        command_id uuid PRIMARY KEY REFERENCES inbox ON DELETE CASCADE,
        data bytea NOT NULL
    )
    """,
    "COMMENT ON TABLE outcome IS 'what a command did, in the transaction of it: a second drive does nothing more'",
)


def upgrade() -> None:
    for statement in (*released_ddl.INBOX, *TABLES):
        op.execute(statement)
