"""The dispatcher's tables, as its migrations make them; `make check` compares the two.

`event` and `attempt` are partitioned by UTC day: see `repository/partitions.py`.
"""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    Boolean,
    CheckConstraint,
    Column,
    Date,
    Double,
    ForeignKey,
    Index,
    Integer,
    MetaData,
    Table,
    Text,
    desc,
    false,
    func,
    literal_column,
    text,
)
from sqlalchemy.dialects.postgresql import BYTEA

from libs.persistence.grants import APPEND_ONLY, LOCKED_ONLY
from libs.persistence.tables import AUDIT, INSTANT, UUID_TYPE, leader_lease, queue_index
from libs.persistence.tables import inbox as shared_inbox
from libs.persistence.tables import key_check as shared_key_check

metadata = MetaData()

# Written into statements rather than passed as parameters: PostgreSQL uses a partial index only where the statement
# itself says what the index is about.
PENDING = literal_column("'pending'", Text)
HELD = literal_column("'held'", Text)
ACTIVE = literal_column("'active'", Text)
UNAVAILABLE = literal_column("'unavailable'", Text)
DISABLED = literal_column("'disabled'", Text)
DELETED = literal_column("'deleted'", Text)
SUCCEEDED = literal_column("'succeeded'", Text)
FAILED = literal_column("'failed'", Text)

inbox = shared_inbox.to_metadata(metadata)
Index("inbox_request", inbox.c.request_id)
queue_index(inbox)
audit, audit_turn = (shared.to_metadata(metadata) for shared in AUDIT)
leader_lease.to_metadata(metadata)
key_check = shared_key_check.to_metadata(metadata)

# `customer_id` is null where the partner subscribed, to the events of all its customers. Secrets are sealed.
# `sequence` is that of the last event about the subscription itself. `generation` counts how often its endpoint was
# replaced: attempts that began before say nothing about the new one.
subscription = Table(
    "subscription",
    metadata,
    Column("id", UUID_TYPE, primary_key=True),
    Column("tenant", Text, nullable=False),
    Column("customer_id", Text),
    Column("event_type", Text, nullable=False),
    Column("callback_url", Text, nullable=False),
    Column("description", Text, nullable=False),
    Column("status", Text, nullable=False),
    Column("secret", BYTEA, nullable=False),
    Column("previous_secret", BYTEA),
    Column("previous_secret_expires_at", INSTANT),
    Column("sequence", BigInteger, nullable=False, server_default=text("0")),
    Column("created_at", INSTANT, nullable=False),
    Column("updated_at", INSTANT, nullable=False),
    Column("generation", Integer, nullable=False, server_default=text("0")),
    Column("unavailable_at", INSTANT),
    CheckConstraint("status IN ('active', 'disabled', 'unavailable', 'deleted')"),
    CheckConstraint("(previous_secret IS NULL) = (previous_secret_expires_at IS NULL)"),
    Index(
        "subscription_owner",
        "tenant",
        "customer_id",
        "created_at",
        postgresql_where=text("status <> 'deleted'"),
    ),
    Index("subscription_listed", "status", "id"),
    Index("subscription_of_tenant", "tenant", "status", "id"),
)

# How the callback URL of a subscription has been doing since `reset_at`. `open_until` is the circuit breaker's: open
# until then, half-open afterwards, null while it is closed. `state_since` is since when it is healthy, slow, or its
# circuit breaker is open.
endpoint = Table(
    "endpoint",
    metadata,
    Column("subscription_id", UUID_TYPE, ForeignKey("subscription.id"), primary_key=True),
    Column("unreachable_in_a_row", Integer, nullable=False, server_default=text("0")),
    Column("open_until", INSTANT),
    Column("probe_seconds", Double),
    Column("is_slow", Boolean, nullable=False, server_default=false()),
    Column("last_success_at", INSTANT),
    Column("failing_since", INSTANT),
    Column("failed_events", Integer, nullable=False, server_default=text("0")),
    Column("reset_at", INSTANT, server_default=func.clock_timestamp()),
    Column("state_since", INSTANT, server_default=func.clock_timestamp()),
    Column("last_failure_at", INSTANT),
    Column("last_failure_status", Integer),
    Column("last_failure_error", Text),
    Index("endpoint_open", "subscription_id", postgresql_where=text("open_until IS NOT NULL")),
    Index("endpoint_slow", "subscription_id", postgresql_where=text("is_slow")),
    postgresql_with={"fillfactor": 50},
)

# One row, locked until commit: positions are in commit order.
event_position = Table("event_position", metadata, Column("last", BigInteger, nullable=False))

# `day` is the UTC day of the time within the id, so that an event that is delivered twice is one row. `customer_id` is
# null for events of the partner itself.
event = Table(
    "event",
    metadata,
    Column("day", Date, primary_key=True),
    Column("id", UUID_TYPE, primary_key=True),
    Column("position", BigInteger, nullable=False),
    Column("tenant", Text, nullable=False),
    Column("customer_id", Text),
    Column("type", Text, nullable=False),
    Column("resource_id", Text, nullable=False),
    Column("sequence", BigInteger, nullable=False),
    Column("body", BYTEA, nullable=False),
    Column("recorded_at", INSTANT, nullable=False),
    Column("request_id", Text),
    Column("trace_context", Text),
    Index("event_of_tenant", "tenant", "position"),
    Index("event_of_customer", "tenant", "customer_id", "position"),
    Index("event_of_tenant_by_type", "tenant", "type", "position"),
    Index("event_of_customer_by_type", "tenant", "customer_id", "type", "position"),
    Index("event_listed", "position"),
    Index("event_listed_by_type", "type", "position"),
    Index("event_of_resource", "resource_id", "position"),
    Index("event_of_request", "request_id", postgresql_where=text("request_id IS NOT NULL")),
    postgresql_partition_by="RANGE (day)",
)

# Deliveries that are not over; one that is over is known by its last attempt. `claim` is the fencing token of the
# process that delivers it, under a lease until `lease_until`. One that was held until `released_at` began its retry
# schedule anew then: `schedule_from` attempts are of the schedules before. No foreign key to the subscription: each
# insert would lock the subscription's row, against a transaction that records an event about it.
delivery = Table(
    "delivery",
    metadata,
    Column("id", UUID_TYPE, primary_key=True),
    Column("subscription_id", UUID_TYPE, nullable=False),
    Column("tenant", Text, nullable=False),
    Column("event_day", Date, nullable=False),
    Column("event_id", UUID_TYPE, nullable=False),
    Column("event_type", Text, nullable=False),
    Column("state", Text, nullable=False),
    Column("attempts_made", Integer, nullable=False, server_default=text("0")),
    Column("due_at", INSTANT, nullable=False),
    Column("lease_until", INSTANT),
    Column("claim", UUID_TYPE),
    Column("created_at", INSTANT, nullable=False),
    Column("held_at", INSTANT),
    Column("schedule_from", Integer, nullable=False, server_default=text("0")),
    Column("released_at", INSTANT),
    CheckConstraint("state IN ('pending', 'held')"),
    CheckConstraint("(claim IS NULL) = (lease_until IS NULL)"),
    CheckConstraint("(state = 'held') = (held_at IS NOT NULL)"),
    Index(
        "delivery_due",
        "subscription_id",
        "due_at",
        postgresql_where=text("state = 'pending' AND claim IS NULL"),
    ),
    Index("delivery_leased", "lease_until", postgresql_where=text("claim IS NOT NULL")),
    Index("delivery_held", "subscription_id", "id", postgresql_where=text("state = 'held'")),
    Index("delivery_of_subscription", "subscription_id", desc("id")),
    Index(
        "delivery_failing",
        "subscription_id",
        desc("id"),
        postgresql_where=text("state = 'pending' AND attempts_made > 0"),
    ),
    # Those in flight are few, and found by `delivery_leased`.
    Index("delivery_of_event", "event_id", postgresql_where=text("claim IS NULL")),
    postgresql_with={
        "autovacuum_vacuum_scale_factor": 0.02,
        "autovacuum_vacuum_threshold": 5000,
        "autovacuum_vacuum_insert_scale_factor": 0.1,
        "autovacuum_analyze_scale_factor": 0.05,
    },
)

# `day` is the UTC day of `attempted_at`. `concluded` is what became of the delivery by this attempt, its last; null
# where another attempt follows. `concluded_at` is when that was recorded, by the database's clock.
attempt = Table(
    "attempt",
    metadata,
    Column("day", Date, primary_key=True),
    Column("delivery_id", UUID_TYPE, primary_key=True),
    Column("number", Integer, primary_key=True, autoincrement=False),
    Column("subscription_id", UUID_TYPE, nullable=False),
    Column("event_day", Date, nullable=False),
    Column("event_id", UUID_TYPE, nullable=False),
    Column("event_type", Text, nullable=False),
    Column("delivery_created_at", INSTANT, nullable=False),
    Column("concluded", Text),
    Column("attempted_at", INSTANT, nullable=False),
    Column("duration_ms", Integer, nullable=False),
    Column("response_status", Integer),
    Column("error", Text),
    Column("response_body", Text),
    Column("concluded_at", INSTANT),
    CheckConstraint("concluded IN ('succeeded', 'failed')"),
    CheckConstraint("(concluded IS NULL) = (concluded_at IS NULL)"),
    Index(
        "attempt_concluding",
        "subscription_id",
        desc("delivery_id"),
        postgresql_include=["concluded"],
        postgresql_where=text("concluded IS NOT NULL"),
    ),
    Index("attempt_of_event", "event_id", postgresql_where=text("concluded IS NOT NULL")),
    Index(
        "attempt_failed",
        "subscription_id",
        desc("delivery_id"),
        postgresql_where=text("concluded = 'failed'"),
    ),
    postgresql_partition_by="RANGE (day)",
)

# The deliveries of an event that has several, but for a first one that failed.
redelivery = Table(
    "redelivery",
    metadata,
    Column("subscription_id", UUID_TYPE, ForeignKey("subscription.id"), primary_key=True),
    Column("event_id", UUID_TYPE, primary_key=True),
    Column("delivery_id", UUID_TYPE, primary_key=True),
    Column("created_at", INSTANT, nullable=False),
    Index("redelivery_kept", "created_at"),
)

# The result of a command, recorded in the transaction of its effect.
outcome = Table(
    "outcome",
    metadata,
    Column(
        "command_id",
        UUID_TYPE,
        ForeignKey("inbox.command_id", ondelete="CASCADE"),
        primary_key=True,
    ),
    Column("data", BYTEA, nullable=False),
)

LIMITED = {
    audit: APPEND_ONLY,
    audit_turn: LOCKED_ONLY,
    event: APPEND_ONLY,
    attempt: APPEND_ONLY,
    key_check: APPEND_ONLY,
}
