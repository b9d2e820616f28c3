"""ledger_read's tables, as its migrations make them; `make check` compares the two."""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    Boolean,
    CheckConstraint,
    Column,
    Date,
    Index,
    Integer,
    MetaData,
    Numeric,
    Table,
    Text,
    UniqueConstraint,
    func,
    text,
)

from libs.persistence.grants import APPEND_ONLY, LOCKED_ONLY
from libs.persistence.tables import AUDIT, FEEDS, INSTANT, OUTBOX, UUID_TYPE, leader_lease

metadata = MetaData()

audit, audit_turn = (shared.to_metadata(metadata) for shared in AUDIT)

for _table in (*OUTBOX, *FEEDS, leader_lease):
    _table.to_metadata(metadata)

resource_sequences = Table(
    "resource_sequences",
    metadata,
    Column("kind", Text, primary_key=True),
    Column("resource_id", Text, primary_key=True),
    Column("sequence", BigInteger, CheckConstraint("sequence > 0"), nullable=False),
)

# The last state that an event reported, of resources whose provider may report one several times.

reported_state = Table(
    "reported_state",
    metadata,
    Column("kind", Text, primary_key=True),
    Column("resource_id", Text, primary_key=True),
    Column("state", Text, nullable=False),
)

# Entries of the feed that are reported once onboarding owns their accounts.

waiting_account = Table(
    "waiting_account",
    metadata,
    Column("account_id", Text, primary_key=True),
    Column("customer_id", Text, nullable=False),
    Column("tries", Integer, nullable=False, server_default=text("0")),
    Column("due_at", INSTANT, nullable=False, server_default=func.clock_timestamp()),
    Index("waiting_account_due", "due_at"),
)

waiting_entry = Table(
    "waiting_entry",
    metadata,
    Column("account_id", Text, primary_key=True),
    Column("position", BigInteger, primary_key=True, autoincrement=False),
    Column("event_id", Text, nullable=False),
    Column("type", Text, nullable=False),
    Column("object_id", Text, nullable=False),
    Column("occurred_at", INSTANT, nullable=False),
    Column("noted_at", INSTANT, nullable=False, server_default=func.clock_timestamp()),
)

# The mirror of postings.

posting_mirror = Table(
    "posting_mirror",
    metadata,
    Column("account_id", Text, primary_key=True),
    Column("segments", BigInteger, nullable=False, server_default=text("0")),
    Column("filler", UUID_TYPE),
    Column(
        "filling_until", INSTANT, nullable=False, server_default=text("'-infinity'::timestamptz")
    ),
)

posting = Table(
    "posting",
    metadata,
    Column("account_id", Text, primary_key=True),
    Column("transaction_id", Text, primary_key=True),
    Column("provider_id", Text, nullable=False),
    Column("tx_uuid", UUID_TYPE, nullable=False),
    Column("segment", BigInteger, nullable=False),
    Column("type", Text, nullable=False),
    Column("settled_at", INSTANT, nullable=False),
    Column("amount", Numeric, CheckConstraint("amount >= 0"), nullable=False),
    Column("is_debit", Boolean, nullable=False),
    Column("counterparty_name", Text),
    Column("counterparty_id", Text),
    UniqueConstraint("account_id", "provider_id"),
    Index("posting_settled", "account_id", "settled_at", "transaction_id"),
)

posting_gap = Table(
    "posting_gap",
    metadata,
    Column("account_id", Text, primary_key=True),
    Column("segment", BigInteger, primary_key=True, autoincrement=False),
    Column("cursor", Text, nullable=False),
)

posting_named = Table(
    "posting_named",
    metadata,
    Column("account_id", Text, primary_key=True),
    Column("provider_id", Text, primary_key=True),
    Column("transaction_id", Text, nullable=False),
    Column("tx_uuid", UUID_TYPE, nullable=False),
    Column("type", Text, nullable=False),
    Column("settled_at", INSTANT, nullable=False),
    Column("amount", Numeric, CheckConstraint("amount >= 0"), nullable=False),
    Column("is_debit", Boolean, nullable=False),
    Column("counterparty_name", Text),
    Column("counterparty_id", Text),
    Column("named_at", INSTANT, nullable=False, server_default=func.clock_timestamp()),
)

posting_block = Table(
    "posting_block",
    metadata,
    Column("account_id", Text, primary_key=True),
    Column("settled_at", INSTANT, primary_key=True),
    Column("transaction_id", Text, primary_key=True),
    Column("postings", Integer, CheckConstraint("postings >= 0"), nullable=False),
    postgresql_with={"fillfactor": 70},
)

# The loads of deposit locations, where the provider has the latest one only.

deposit_load = Table(
    "deposit_load",
    metadata,
    Column("account_id", Text, primary_key=True),
    Column("load_date", Date, primary_key=True),
    Column("locations", Integer, CheckConstraint("locations >= 0"), nullable=False),
)

deposit_location = Table(
    "deposit_location",
    metadata,
    Column("account_id", Text, primary_key=True),
    Column("load_date", Date, primary_key=True),
    Column("location_id", BigInteger, primary_key=True, autoincrement=False),
    Column("name", Text, nullable=False),
    Column("city_and_state", Text, nullable=False),
    Column("balance", Numeric, nullable=False),
)

LIMITED = {
    audit: APPEND_ONLY,
    audit_turn: LOCKED_ONLY,
    posting: APPEND_ONLY,
    deposit_load: APPEND_ONLY,
    deposit_location: APPEND_ONLY,
}
