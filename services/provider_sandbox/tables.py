"""The bank's tables, as its migrations make them; `make check` compares the two.

They are read here and used by name: the bank's statements are SQL constants (see `database`). Views, functions and the
triggers that keep the ledger in balance stand in the migrations.

`list_order` has a row for each table whose rows a list numbers in the order of commits: by `sequence`.
"""

from __future__ import annotations

import uuid

from sqlalchemy import (
    BigInteger,
    Boolean,
    CheckConstraint,
    Column,
    Computed,
    Date,
    ForeignKey,
    ForeignKeyConstraint,
    Identity,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    Numeric,
    Table,
    Text,
    UniqueConstraint,
    false,
    func,
    text,
)
from sqlalchemy.dialects.postgresql import JSONB, TIMESTAMP, UUID

from libs.persistence.grants import APPEND_ONLY

metadata = MetaData()

INSTANT = TIMESTAMP(timezone=True)
UUID_TYPE: UUID[uuid.UUID] = UUID(as_uuid=True)
AMOUNT = Numeric(20, 2)
TOTAL = Numeric(30, 2)

_NOW = func.clock_timestamp()
_ZERO = text("0")
_OPEN = text("'open'::text")


def _sequence() -> Column[int]:
    return Column("sequence", BigInteger, Identity(always=True), nullable=False)


def _account(*, primary_key: bool = False) -> Column[str]:
    return Column(
        "account_id",
        Text,
        ForeignKey("account.account_id"),
        primary_key=primary_key,
        nullable=False,
    )


# What every API has.

idempotency_record = Table(
    "idempotency_record",
    metadata,
    Column("api", Text, primary_key=True),
    Column("key", Text, primary_key=True),
    Column("operation", Text, nullable=False),
    Column("fingerprint", LargeBinary, nullable=False),
    Column("status", Integer),
    Column("body", Text),
    Column("created_at", INSTANT, nullable=False, server_default=func.now()),
)

feed = Table(
    "feed",
    metadata,
    Column(
        "api", Text, CheckConstraint("api IN ('identity', 'core', 'financial')"), primary_key=True
    ),
    Column("position", BigInteger, nullable=False, server_default=_ZERO),
)

feed_event = Table(
    "feed_event",
    metadata,
    Column("api", Text, ForeignKey("feed.api"), primary_key=True),
    Column("position", BigInteger, primary_key=True, autoincrement=False),
    Column("type", Text, nullable=False),
    Column("occurred_at", INSTANT, nullable=False),
    Column("content", Text, nullable=False),
)

list_order = Table("list_order", metadata, Column("list", Text, primary_key=True))

# The identity provider.

identity_record = Table(
    "identity_record",
    metadata,
    Column("identity_id", Text, primary_key=True),
    Column("customer_id", Text, nullable=False),
    Column("business_customer_id", Text),
    Column("kind", Text, CheckConstraint("kind IN ('business', 'person')"), nullable=False),
    Column("fields", JSONB, nullable=False),
    Column(
        "status",
        Text,
        CheckConstraint(
            "status IN ('approved', 'pending_review', 'awaiting_documents', 'denied', 'canceled')"
        ),
        nullable=False,
    ),
    Column("version", Integer, nullable=False, server_default=text("1")),
    _sequence(),
    Index("identity_record_customer", "customer_id"),
    Index("identity_record_sequence", "sequence", unique=True),
)

# Core banking.

core_customer = Table(
    "core_customer",
    metadata,
    Column("core_id", Text, primary_key=True),
    Column("customer_id", Text, nullable=False),
    Column("business_customer_id", Text),
    Column("kind", Text, CheckConstraint("kind IN ('business', 'person')"), nullable=False),
    Column("fields", JSONB, nullable=False),
    Column(
        "status",
        Text,
        CheckConstraint("status IN ('active', 'closed')"),
        nullable=False,
        server_default=text("'active'::text"),
    ),
    _sequence(),
    Index("core_customer_customer", "customer_id"),
    Index("core_customer_sequence", "sequence", unique=True),
)

external_account = Table(
    "external_account",
    metadata,
    Column("external_account_id", Text, primary_key=True),
    _sequence(),
    Column("core_id", Text, ForeignKey("core_customer.core_id"), nullable=False),
    Column("bank_name", Text, nullable=False),
    Column("name_on_account", Text, nullable=False),
    Column("routing_number", Text, nullable=False),
    Column("account_number", Text, nullable=False),
    Column("address_on_account", JSONB, nullable=False),
    Column("is_primary", Boolean, nullable=False),
    Column(
        "status",
        Text,
        CheckConstraint("status IN ('open', 'closed')"),
        nullable=False,
        server_default=_OPEN,
    ),
    CheckConstraint("status = 'open' OR NOT is_primary"),
    Index("external_account_core", "core_id"),
    Index("external_account_primary", "core_id", unique=True, postgresql_where=text("is_primary")),
    Index(
        "external_account_linked",
        "core_id",
        "routing_number",
        "account_number",
        unique=True,
        postgresql_where=text("status = 'open'"),
    ),
    Index("external_account_sequence", "sequence", unique=True),
)

wire = Table(
    "wire",
    metadata,
    Column("transaction_id", Text, primary_key=True),
    _sequence(),
    _account(),
    Column(
        "external_account_id",
        Text,
        ForeignKey("external_account.external_account_id"),
        nullable=False,
    ),
    Column("counterparty_name", Text, nullable=False),
    Column("amount", AMOUNT, CheckConstraint("amount > 0"), nullable=False),
    Column("purpose", Text, nullable=False),
    Column(
        "state",
        Text,
        CheckConstraint("state IN ('submitted', 'completed', 'rejected', 'returned')"),
        nullable=False,
        server_default=text("'submitted'::text"),
    ),
    Column("reason", Text),
    Column("return_transaction_id", Text, ForeignKey("journal_entry.transaction_id")),
    Column("due_at", INSTANT, nullable=False),
    CheckConstraint("(state IN ('rejected', 'returned')) = (reason IS NOT NULL)"),
    CheckConstraint("(state = 'returned') = (return_transaction_id IS NOT NULL)"),
    Index("wire_account", "account_id", "sequence"),
    Index("wire_due", "due_at", postgresql_where=text("state = 'submitted'")),
    Index("wire_sequence", "sequence", unique=True),
    postgresql_with={"fillfactor": 70},
)

# The ledger. The bank's own accounts have no row in `account`: their balances are sums.

ledger_account = Table(
    "ledger_account",
    metadata,
    Column("ledger_account_id", Text, primary_key=True),
    Column("owner", Text, CheckConstraint("owner IN ('bank', 'customer')"), nullable=False),
)

account = Table(
    "account",
    metadata,
    Column("account_id", Text, ForeignKey("ledger_account.ledger_account_id"), primary_key=True),
    Column(
        "account_number",
        Text,
        nullable=False,
        unique=True,
        server_default=text("(nextval('account_number'::regclass))::text"),
    ),
    Column("core_id", Text, ForeignKey("core_customer.core_id"), nullable=False),
    Column(
        "account_group",
        Text,
        CheckConstraint("account_group IN ('deposit', 'reserve')"),
        nullable=False,
    ),
    Column("account_title", Text, nullable=False),
    Column(
        "status",
        Text,
        CheckConstraint("status IN ('pending', 'open', 'closed')"),
        nullable=False,
        server_default=_OPEN,
    ),
    Column("is_restricted", Boolean, nullable=False, server_default=false()),
    Column("closed_at", INSTANT),
    Column("total", TOTAL, nullable=False, server_default=_ZERO),
    Column("held", TOTAL, CheckConstraint("held >= 0"), nullable=False, server_default=_ZERO),
    Column("reserve_account_id", Text, ForeignKey("account.account_id")),
    _sequence(),
    Column("last_posting", BigInteger, nullable=False, server_default=_ZERO),
    CheckConstraint("(status = 'closed') = (closed_at IS NOT NULL)"),
    CheckConstraint("total >= held", name="account_never_overdrawn"),
    Index("account_core", "core_id"),
    Index("account_sequence", "sequence", unique=True),
    postgresql_with={"fillfactor": 70},
)

journal_entry = Table(
    "journal_entry",
    metadata,
    Column("transaction_id", Text, primary_key=True),
    Column(
        "type",
        Text,
        CheckConstraint(
            "type IN ('deposit', 'withdrawal', 'wire', 'ach', 'fee', 'interest', 'return')"
        ),
        nullable=False,
    ),
    Column("counterparty_name", Text, nullable=False),
    Column("settled_at", INSTANT, nullable=False),
    Column(
        "counterparty_id",
        Text,
        Computed("('cpt_'::text || md5(counterparty_name))", persisted=True),
        nullable=False,
    ),
)

posting = Table(
    "posting",
    metadata,
    Column("posting_id", UUID_TYPE, primary_key=True, server_default=func.gen_random_uuid()),
    _sequence(),
    Column("transaction_id", Text, ForeignKey("journal_entry.transaction_id"), nullable=False),
    Column(
        "ledger_account_id",
        Text,
        ForeignKey("ledger_account.ledger_account_id"),
        nullable=False,
    ),
    Column("amount", AMOUNT, CheckConstraint("amount <> 0"), nullable=False),
    Column("settled_at", INSTANT, nullable=False),
    Index("posting_of_entry", "transaction_id", "ledger_account_id", unique=True),
    Index("posting_settled", "ledger_account_id", "settled_at", "transaction_id"),
    Index(
        "posting_account",
        "ledger_account_id",
        "sequence",
        postgresql_where=text("ledger_account_id NOT LIKE 'bank:%'"),
    ),
    Index(
        "posting_sequence",
        "sequence",
        unique=True,
        postgresql_where=text("ledger_account_id NOT LIKE 'bank:%'"),
    ),
)

# Sums of postings, moved by triggers.

posting_day = Table(
    "posting_day",
    metadata,
    _account(primary_key=True),
    Column("day", Date, primary_key=True),
    Column("postings", Integer, nullable=False),
    Column("amount", TOTAL, nullable=False),
    postgresql_with={"fillfactor": 70},
)

posting_slot = Table(
    "posting_slot",
    metadata,
    _account(primary_key=True),
    Column("slot", INSTANT, primary_key=True),
    Column("postings", Integer, nullable=False),
    postgresql_with={"fillfactor": 70},
)

interest_earned = Table(
    "interest_earned",
    metadata,
    _account(primary_key=True),
    Column("year", Integer, primary_key=True, autoincrement=False),
    Column("amount", TOTAL, nullable=False),
)

# What the financial provider shows beside the ledger.

ach_request = Table(
    "ach_request",
    metadata,
    Column("reference_id", Text, primary_key=True),
    _account(),
    Column("amount", AMOUNT, CheckConstraint("amount > 0"), nullable=False),
    Column(
        "status",
        Text,
        CheckConstraint("status IN ('pending', 'submitted', 'settled', 'returned')"),
        nullable=False,
        server_default=text("'pending'::text"),
    ),
    Column("return_code", Text),
    Column("return_description", Text),
    Column("created_at", INSTANT, nullable=False, server_default=_NOW),
    Column("updated_at", INSTANT, nullable=False, server_default=_NOW),
    CheckConstraint("(status = 'returned') = (return_code IS NOT NULL)"),
    CheckConstraint("(return_code IS NULL) = (return_description IS NULL)"),
    Index("ach_request_account", "account_id", "created_at", "reference_id"),
)

statement = Table(
    "statement",
    metadata,
    Column("statement_id", Text, primary_key=True),
    _account(),
    Column("start_date", Date, nullable=False),
    Column("end_date", Date, nullable=False),
    Column("generated_at", INSTANT, nullable=False, server_default=_NOW),
    UniqueConstraint("account_id", "start_date"),
)

deposit_load = Table(
    "deposit_load",
    metadata,
    _account(primary_key=True),
    Column("load_date", Date, primary_key=True),
    Column("balance", TOTAL, CheckConstraint("balance >= 0"), nullable=False),
    Column("locations", Integer, CheckConstraint("locations >= 0"), nullable=False),
    _sequence(),
    Index("deposit_load_sequence", "sequence", unique=True),
)

deposit_location = Table(
    "deposit_location",
    metadata,
    Column("account_id", Text, primary_key=True),
    Column("load_date", Date, primary_key=True),
    Column("location_id", Integer, primary_key=True, autoincrement=False),
    Column("balance", TOTAL, CheckConstraint("balance > 0"), nullable=False),
    ForeignKeyConstraint(
        ["account_id", "load_date"], ["deposit_load.account_id", "deposit_load.load_date"]
    ),
)

settlement_calculation = Table(
    "settlement_calculation",
    metadata,
    Column("calculation_id", BigInteger, Identity(always=True), primary_key=True),
    _account(),
    Column("settlement_date", Date, nullable=False),
    Column("amount", AMOUNT, nullable=False),
    Column("ach_file", Text),
    Column("source", Text),
    Column("created_at", INSTANT, nullable=False, server_default=_NOW),
    Index(
        "settlement_calculation_account",
        "account_id",
        "settlement_date",
        "created_at",
        "calculation_id",
    ),
)

LIMITED = {
    journal_entry: APPEND_ONLY,
    posting: APPEND_ONLY,
    feed_event: APPEND_ONLY,
    settlement_calculation: APPEND_ONLY,
}
