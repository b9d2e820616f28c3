"""The gateway's tables, as its migrations make them; `make check` compares the two."""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    Boolean,
    CheckConstraint,
    Column,
    Double,
    ForeignKey,
    Identity,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    SmallInteger,
    Table,
    Text,
    false,
    func,
    text,
    true,
)
from sqlalchemy.dialects.postgresql import ARRAY

from libs.persistence.grants import APPEND_ONLY, LOCKED_ONLY, READ_ONLY
from libs.persistence.tables import AUDIT, INSTANT, UUID_TYPE
from libs.persistence.tables import key_check as shared_key_check

metadata = MetaData()

tenants = Table(
    "tenants",
    metadata,
    Column("tenant", Text, primary_key=True),
    Column("name", Text, nullable=False),
    Column("created_at", INSTANT, nullable=False, server_default=func.now()),
)

# People, and consoles at which they log in.
operators = Table(
    "operators",
    metadata,
    Column("name", Text, primary_key=True),
    Column(
        "role",
        Text,
        CheckConstraint("role IN ('viewer', 'operator', 'admin', 'console')"),
        nullable=False,
    ),
    Column("created_at", INSTANT, nullable=False, server_default=func.now()),
    Column("revoked_at", INSTANT),
    Index("operators_by_time", "created_at", "name"),
)

# How an operator logs in at a console. What is pending replaces the rest when the enrolment is confirmed.
operator_logins = Table(
    "operator_logins",
    metadata,
    Column("operator", Text, ForeignKey("operators.name"), primary_key=True),
    Column("password", Text, nullable=False),
    Column("one_time_until", INSTANT),
    Column("totp", Text),
    Column("last_step", BigInteger, nullable=False, server_default=text("0")),
    Column("pending_password", Text),
    Column("pending_totp", Text),
)

operator_sessions = Table(
    "operator_sessions",
    metadata,
    Column("digest", LargeBinary, primary_key=True),
    Column("operator", Text, ForeignKey("operators.name"), nullable=False, index=True),
    Column("enrolment", Boolean, nullable=False),
    Column("created_at", INSTANT, nullable=False, server_default=func.now()),
    Column("last_seen_at", INSTANT, nullable=False, server_default=func.now()),
    Column("expires_at", INSTANT, nullable=False, index=True),
)

login_attempts = Table(
    "login_attempts",
    metadata,
    Column("subject", LargeBinary, primary_key=True),
    Column("failures", Integer, nullable=False),
    Column("last_at", INSTANT, nullable=False, index=True),
    Column("locked_until", INSTANT, nullable=False),
)

credentials = Table(
    "credentials",
    metadata,
    Column("id", BigInteger, Identity(always=True), primary_key=True),
    Column("subscription_key", Text, nullable=False, unique=True),
    Column(
        "tenant",
        Text,
        ForeignKey("tenants.tenant"),
        CheckConstraint("(tenant IS NULL) = (family = 'operator')"),
    ),
    Column(
        "operator",
        Text,
        ForeignKey("operators.name"),
        CheckConstraint("(operator IS NOT NULL) = (family = 'operator')"),
        index=True,
    ),
    Column(
        "family",
        Text,
        CheckConstraint("family IN ('partner', 'customer', 'operator')"),
        nullable=False,
    ),
    Column(
        "customer_id",
        UUID_TYPE,
        CheckConstraint("(customer_id IS NOT NULL) = (family = 'customer')"),
    ),
    Column("scopes", ARRAY(Text), nullable=False),
    Column("allowed_networks", ARRAY(Text), nullable=False, server_default="{}"),
    Column("secret", Text, nullable=False),
    Column("previous_secret", Text),
    Column("previous_secret_expires_at", INSTANT),
    Column("reads_per_minute", Integer, CheckConstraint("reads_per_minute > 0"), nullable=False),
    Column("writes_per_minute", Integer, CheckConstraint("writes_per_minute > 0"), nullable=False),
    Column("wires_per_minute", Integer, CheckConstraint("wires_per_minute > 0"), nullable=False),
    Column("created_at", INSTANT, nullable=False, server_default=func.now()),
    Column("expires_at", INSTANT),
    Column("revoked_at", INSTANT),
    Column("last_used_at", INSTANT),
    Column("requires_idempotency_key", Boolean, nullable=False, server_default=false()),
    Column("registered", Boolean, nullable=False, server_default=false()),
    Index(
        "credentials_by_time",
        "created_at",
        "subscription_key",
        postgresql_where=text("tenant IS NOT NULL"),
    ),
    Index("credentials_of_tenant", "tenant", "created_at", "subscription_key"),
)

# Partitioned by signed timestamp: see `nonce_partitions`. Logged: what was accepted before a crash of the database must
# not pass again after it.
nonces = Table(
    "nonces",
    metadata,
    Column("credential_id", BigInteger, primary_key=True, autoincrement=False),
    Column("timestamp", BigInteger, primary_key=True, autoincrement=False),
    Column("nonce", Text, primary_key=True),
    postgresql_partition_by="RANGE (timestamp)",
)

nonce_bounds = Table(
    "nonce_bounds",
    metadata,
    Column(
        "only_row",
        Boolean,
        CheckConstraint("only_row"),
        primary_key=True,
        server_default=true(),
    ),
    Column("floor", BigInteger, nullable=False),
    Column("ceiling", BigInteger, CheckConstraint("ceiling >= floor"), nullable=False),
)

rates = Table(
    "rates",
    metadata,
    Column("credential_id", BigInteger, primary_key=True, autoincrement=False),
    Column("class", Text, primary_key=True),
    Column("due", Double, nullable=False),
    Column("granted", BigInteger, nullable=False),
    Column("closed_to", BigInteger, nullable=False, server_default=text("0")),
)

failures = Table(
    "failures",
    metadata,
    Column("address", Text, primary_key=True),
    Column("minute", BigInteger, primary_key=True, autoincrement=False),
    Column("count", BigInteger, nullable=False),
    prefixes=["UNLOGGED"],
)

traffic = Table(
    "traffic",
    metadata,
    Column("minute", BigInteger, primary_key=True, autoincrement=False),
    Column("answer", SmallInteger, primary_key=True, autoincrement=False),
    Column("latency", SmallInteger, primary_key=True, autoincrement=False),
    Column("requests", BigInteger, nullable=False),
    prefixes=["UNLOGGED"],
)

queue_depths = Table(
    "queue_depths",
    metadata,
    Column("minute", BigInteger, primary_key=True, autoincrement=False),
    Column("service", Text, primary_key=True),
    Column("messages", BigInteger, nullable=False),
    prefixes=["UNLOGGED"],
)

audit, audit_turn = (shared.to_metadata(metadata) for shared in AUDIT)
key_check = shared_key_check.to_metadata(metadata)

LIMITED = {
    audit: APPEND_ONLY,
    audit_turn: LOCKED_ONLY,
    nonces: APPEND_ONLY,
    nonce_bounds: READ_ONLY,
    key_check: APPEND_ONLY,
}
