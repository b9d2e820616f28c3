"""Onboarding's tables, as its migrations make them; `make check` compares the two.

`customers` are the businesses. Personal data stand in `business` and `details`, their sensitive fields sealed.
"""

from __future__ import annotations

from typing import Any

from sqlalchemy import (
    BigInteger,
    Boolean,
    CheckConstraint,
    Column,
    ForeignKeyConstraint,
    Index,
    Integer,
    MetaData,
    SmallInteger,
    Table,
    Text,
    UniqueConstraint,
    desc,
    false,
    func,
    text,
)
from sqlalchemy.dialects.postgresql import BYTEA, JSONB

from libs.persistence.grants import APPEND_ONLY, LOCKED_ONLY
from libs.persistence.tables import (
    AUDIT,
    FEEDS,
    INSTANT,
    OUTBOX,
    UUID_TYPE,
    database_life,
    leader_lease,
    queue_index,
)
from libs.persistence.tables import inbox as shared_inbox
from libs.persistence.tables import key_check as shared_key_check

metadata = MetaData()

_NOW = func.clock_timestamp()

inbox = shared_inbox.to_metadata(metadata)
Index("inbox_request", inbox.c.request_id)
queue_index(inbox)
audit, audit_turn = (shared.to_metadata(metadata) for shared in AUDIT)
key_check = shared_key_check.to_metadata(metadata)
for _table in (*OUTBOX, *FEEDS, leader_lease, database_life):
    _table.to_metadata(metadata)


def _of_customer(**options: Any) -> ForeignKeyConstraint:
    return ForeignKeyConstraint(
        ["tenant", "customer_id"], ["customers.tenant", "customers.customer_id"], **options
    )


customers = Table(
    "customers",
    metadata,
    Column("customer_id", UUID_TYPE, primary_key=True),
    Column("tenant", Text, nullable=False),
    Column("saga_id", UUID_TYPE, nullable=False),
    Column("status", Text, nullable=False),
    Column("business", JSONB, nullable=False),
    Column("ein_last_four", Text, nullable=False),
    Column("identity_id", Text, unique=True),
    Column("verification", JSONB),
    Column("core_id", Text, unique=True),
    Column("refused_by_provider", Boolean, nullable=False, server_default=false()),
    Column("sequence", BigInteger, nullable=False, server_default=text("0")),
    Column("created_at", INSTANT, nullable=False, server_default=_NOW),
    Column("updated_at", INSTANT, nullable=False, server_default=_NOW),
    CheckConstraint(
        "status IN ('pending', 'awaiting_documents', 'pending_review', 'approved', 'denied', 'canceled')"
    ),
    UniqueConstraint("tenant", "customer_id"),
    Index("customers_newest", "tenant", desc("created_at"), desc("customer_id")),
    Index("customers_with_status", "status", "created_at", "customer_id"),
    Index("customers_of_tenant", "tenant", "status", "created_at", "customer_id"),
    Index(
        "customers_named",
        # Its collation is "C", of which reflection does not tell.
        text("lower(business ->> 'business_name'::text)"),
        "customer_id",
        "tenant",
        "status",
    ),
)

persons = Table(
    "persons",
    metadata,
    Column("tenant", Text, primary_key=True),
    Column("person_id", UUID_TYPE, primary_key=True),
    Column("customer_id", UUID_TYPE, nullable=False),
    Column("position", SmallInteger, nullable=False),
    Column("details", JSONB, nullable=False),
    Column("identity_id", Text, unique=True),
    Column("verification", JSONB),
    Column("core_id", Text, unique=True),
    Column("sequence", BigInteger, nullable=False, server_default=text("0")),
    _of_customer(),
    Index("persons_customer", "customer_id", "position"),
    Index("persons_person", "person_id"),
)

external_accounts = Table(
    "external_accounts",
    metadata,
    Column("draft_id", UUID_TYPE, primary_key=True),
    Column("tenant", Text, nullable=False),
    Column("customer_id", UUID_TYPE, nullable=False),
    Column("external_account_id", Text, unique=True),
    Column("details", JSONB, nullable=False),
    Column("number_last_four", Text, nullable=False),
    Column("number_digest", BYTEA, nullable=False),
    Column("is_primary", Boolean, nullable=False),
    Column("linked_at", INSTANT),
    Column("sequence", BigInteger, nullable=False, server_default=text("0")),
    Column("created_at", INSTANT, nullable=False, server_default=_NOW),
    _of_customer(),
    UniqueConstraint("customer_id", "number_digest"),
    Index(
        "external_accounts_primary",
        "customer_id",
        unique=True,
        postgresql_where=text("is_primary"),
    ),
)

# The bank may report the status of an account before we know whose it is.
accounts = Table(
    "accounts",
    metadata,
    Column("account_id", Text, primary_key=True),
    Column("tenant", Text),
    Column("customer_id", UUID_TYPE),
    Column("account_number", Text),
    Column("account_group", Text, nullable=False, server_default=text("'deposit'::text")),
    Column("status", Text, nullable=False),
    _of_customer(),
    CheckConstraint("num_nulls(tenant, customer_id, account_number) IN (0, 3)"),
    CheckConstraint("account_group IN ('deposit', 'reserve')"),
    Index("accounts_tenant", "tenant", "account_id"),
    Index("accounts_customer", "customer_id", "account_id"),
)

ein_holds = Table(
    "ein_holds",
    metadata,
    Column("tenant", Text, primary_key=True),
    Column("ein_digest", BYTEA, primary_key=True),
    Column("customer_id", UUID_TYPE, nullable=False),
    _of_customer(deferrable=True, initially="DEFERRED"),
    Index("ein_holds_customer", "customer_id"),
)

lookup_keys = Table(
    "lookup_keys",
    metadata,
    Column("key_id", Text, primary_key=True),
    Column("first_seen_at", INSTANT, nullable=False, server_default=_NOW),
)

saga_steps = Table(
    "saga_steps",
    metadata,
    Column("saga_id", UUID_TYPE, primary_key=True),
    Column("name", Text, primary_key=True),
    Column("tenant", Text, nullable=False),
    Column("customer_id", UUID_TYPE, nullable=False),
    Column("operation", Text, nullable=False),
    Column("idempotency_key", UUID_TYPE, nullable=False, unique=True),
    Column("compensation", Boolean, nullable=False),
    Column("state", Text, nullable=False, server_default=text("'intended'::text")),
    Column("result", JSONB),
    Column("refusal_status", Integer),
    Column("refusal_code", Text),
    Column("intended_at", INSTANT, nullable=False, server_default=_NOW),
    Column("recorded_at", INSTANT),
    Column("settled_at", INSTANT),
    Column("first_sent_at", INSTANT, server_default=_NOW),
    Column("last_sent_at", INSTANT, server_default=_NOW),
    Column("last_attempt_at", INSTANT, server_default=_NOW),
    Column("command_id", UUID_TYPE),
    Column("resolution", Text),
    Column("resolved_by", Text),
    Column("resolution_reason", Text),
    Column("resolved_at", INSTANT),
    Column("refusal_reason", Text),
    CheckConstraint("state IN ('intended', 'done', 'refused')"),
    CheckConstraint("resolution IN ('absent', 'done', 'refused')"),
    Index("saga_steps_kept", "recorded_at"),
    Index("saga_steps_intended", "customer_id", postgresql_where=text("state = 'intended'")),
    Index("saga_steps_customer", "customer_id", "intended_at"),
    Index(
        "saga_steps_refused",
        "recorded_at",
        postgresql_where=text("compensation AND state = 'refused' AND settled_at IS NULL"),
    ),
)

saga_origin = Table(
    "saga_origin",
    metadata,
    Column("command_id", UUID_TYPE, primary_key=True),
    Column("message_id", Text, nullable=False),
)

LIMITED = {
    audit: APPEND_ONLY,
    audit_turn: LOCKED_ONLY,
    lookup_keys: APPEND_ONLY,
    key_check: APPEND_ONLY,
}
