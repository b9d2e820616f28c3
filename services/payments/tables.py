"""Payments' tables, as its migrations make them; `make check` compares the two.

The migrations also make a trigger that refuses changes of `wire_history`, and the functions of `continuity`.
"""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    CheckConstraint,
    Column,
    ForeignKey,
    Identity,
    Index,
    Integer,
    MetaData,
    Numeric,
    Table,
    Text,
    desc,
    func,
    text,
)
from sqlalchemy.dialects.postgresql import JSONB

from libs.persistence.grants import APPEND_ONLY, LOCKED_ONLY
from libs.persistence.tables import (
    AUDIT,
    FEEDS,
    INSTANT,
    OUTBOX,
    UUID_TYPE,
    database_life,
    leader_lease,
)
from libs.persistence.tables import inbox as shared_inbox

metadata = MetaData()

# `life_started_at`: the start of the database server in whose life the command was first accepted; null in commands of
# earlier releases. A restored or promoted database has another life than the one that its rows name.
inbox = shared_inbox.to_metadata(metadata)
inbox.append_column(
    Column("life_started_at", INSTANT, server_default=func.pg_postmaster_start_time())
)
Index("inbox_request", inbox.c.request_id)
audit, audit_turn = (shared.to_metadata(metadata) for shared in AUDIT)
for _table in (*OUTBOX, *FEEDS, leader_lease, database_life):
    _table.to_metadata(metadata)

_STATES = (
    "state IN ('pending_approval', 'pending_submission', 'submitted', 'completed', 'rejected',"
    " 'returned', 'canceled')"
)

# `sequence`: the number of steps in the history, and of events. `creditor`: the holder of the external account, which
# every send names; null in wires of earlier releases. `approval_expires_at`: null when no approval was needed.
# `approved_by`: the command that approved it, and sends it.
#
# The marks of sends, by the database's clock:
#
# | send_begun_at | last_sent_at | meaning                                                                            |
# |---------------|--------------|------------------------------------------------------------------------------------|
# | null          | null         | no send is recorded: certainly nothing was sent, unless this database lost commits |
# | t             | null         | sent by a release that stored no `last_sent_at`: treated as sent just now          |
# | t             | >= t         | first send at t, last send of unknown outcome at `last_sent_at`                    |
# | t             | < t          | no send is recorded; one that was lost is possible, no later than `last_sent_at`   |
#
# A wire of the last row that is then sent keeps its t: its first send was later than that.
wires = Table(
    "wires",
    metadata,
    Column("transaction_id", UUID_TYPE, primary_key=True),
    Column("tenant", Text, nullable=False),
    Column("customer_id", Text, nullable=False),
    Column("sending_account_id", Text, nullable=False),
    Column("external_account_id", Text, nullable=False),
    Column("amount", Numeric(12, 2), CheckConstraint("amount > 0"), nullable=False),
    Column("purpose", Text, nullable=False),
    Column("state", Text, CheckConstraint(_STATES), nullable=False),
    Column("sequence", Integer, CheckConstraint("sequence > 0"), nullable=False),
    Column("send_begun_at", INSTANT),
    Column("canceled_by", UUID_TYPE),
    Column("created_at", INSTANT, nullable=False),
    Column("last_sent_at", INSTANT),
    Column("creditor", JSONB),
    Column("approval_expires_at", INSTANT),
    Column("approved_at", INSTANT),
    Column("approved_by", UUID_TYPE),
    Index(
        "wires_newest",
        "customer_id",
        "tenant",
        desc("created_at"),
        desc("transaction_id"),
        "state",
    ),
    Index("wires_in_state", "state", "created_at", "transaction_id"),
    Index("wires_of_tenant", "tenant", "state", "created_at", "transaction_id"),
    Index(
        "wires_pending",
        "send_begun_at",
        postgresql_where=text("state = 'pending_submission'::text"),
    ),
    Index(
        "wires_waiting",
        "approval_expires_at",
        postgresql_where=text("state = 'pending_approval'::text"),
    ),
    Index(
        "wires_approved",
        "customer_id",
        "tenant",
        "approved_at",
        postgresql_where=text("approved_at IS NOT NULL"),
    ),
    Index(
        "wires_approved_by",
        "approved_by",
        unique=True,
        postgresql_where=text("approved_by IS NOT NULL"),
    ),
)

wire_history = Table(
    "wire_history",
    metadata,
    Column("transaction_id", UUID_TYPE, ForeignKey(wires.c.transaction_id), primary_key=True),
    Column(
        "sequence", Integer, CheckConstraint("sequence > 0"), primary_key=True, autoincrement=False
    ),
    Column("state", Text, CheckConstraint(_STATES), nullable=False),
    Column("reason", Text),
    Column("at", INSTANT, nullable=False),
    Column("by", Text),
    Column("comment", Text),
    Column("reason_detail", Text),
)

# What a partner has set for its customer, null for none.
wire_policy = Table(
    "wire_policy",
    metadata,
    Column("tenant", Text, primary_key=True),
    Column("customer_id", Text, primary_key=True),
    Column("per_wire_limit", Numeric(12, 2)),
    Column("daily_limit", Numeric(12, 2)),
    Column("daily_count", Integer),
    Column("approval_threshold", Numeric(12, 2)),
    Column("new_payee_hours", Integer),
    Column("updated_at", INSTANT, nullable=False),
    Column("command_sequence", BigInteger),
    Index("wire_policy_newest", "updated_at", "customer_id"),
    Index("wire_policy_of_customer", "customer_id"),
)

contradiction = Table(
    "contradiction",
    metadata,
    Column("id", BigInteger, Identity(always=True), primary_key=True),
    Column("kind", Text, nullable=False),
    Column("transaction_id", Text, nullable=False),
    Column("feed_position", BigInteger),
    Column("ours", Text),
    Column("theirs", Text),
    Column("recorded_at", INSTANT, nullable=False, server_default=func.clock_timestamp()),
)

LIMITED = {
    audit: APPEND_ONLY,
    audit_turn: LOCKED_ONLY,
    wire_history: APPEND_ONLY,
    contradiction: APPEND_ONLY,
}
