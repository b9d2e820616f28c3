"""Reconciliation's tables, as its migrations make them; `make check` compares the two.

`scan` and `suspect` say how far the run that is under way has come; a scan may have been begun by a run that was given
up. `posted`, `wire_debit` and `return_posting` are sums of the financial provider's postings.
"""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    Boolean,
    CheckConstraint,
    Column,
    ForeignKey,
    Index,
    Integer,
    MetaData,
    Numeric,
    Table,
    Text,
    desc,
    false,
    func,
    text,
)
from sqlalchemy.dialects.postgresql import ARRAY, JSONB

from libs.persistence.grants import APPEND_ONLY, LOCKED_ONLY
from libs.persistence.tables import AUDIT, INSTANT, UUID_TYPE, feed_cursor, leader_lease

metadata = MetaData()

_NOW = func.clock_timestamp()
_ZERO = text("0")
_NEW_ID = func.gen_random_uuid()
_AMOUNT = Numeric(20, 2)
_TOTAL = Numeric(30, 2)
_SINGLE_ROW = text("(true)")
"""Indexed with a condition: at most one row fulfils it."""

audit, audit_turn = (shared.to_metadata(metadata) for shared in AUDIT)
for _table in (feed_cursor, leader_lease):
    _table.to_metadata(metadata)

run = Table(
    "run",
    metadata,
    Column("run_id", UUID_TYPE, primary_key=True, server_default=_NEW_ID),
    Column("cause", Text, nullable=False),
    Column("requested_at", INSTANT, nullable=False, server_default=_NOW),
    Column("started_at", INSTANT),
    Column("finished_at", INSTANT),
    Column("outcome", Text, CheckConstraint("outcome IN ('complete', 'gave_up')")),
    Column("looked_at", BigInteger, nullable=False, server_default=_ZERO),
    Column("suspected", BigInteger, nullable=False, server_default=_ZERO),
    Column("in_flight", BigInteger, nullable=False, server_default=_ZERO),
    Column("differing", BigInteger, nullable=False, server_default=_ZERO),
    CheckConstraint("(finished_at IS NULL) = (outcome IS NULL)"),
    Index("run_waiting", _SINGLE_ROW, unique=True, postgresql_where=text("started_at IS NULL")),
    Index(
        "run_under_way",
        _SINGLE_ROW,
        unique=True,
        postgresql_where=text("started_at IS NOT NULL AND finished_at IS NULL"),
    ),
    Index("run_finished", desc("finished_at"), postgresql_where=text("finished_at IS NOT NULL")),
    Index("run_listed", "requested_at", "run_id"),
)

scan = Table(
    "scan",
    metadata,
    Column("name", Text, primary_key=True),
    Column("run_id", UUID_TYPE, ForeignKey("run.run_id", ondelete="CASCADE"), nullable=False),
    Column("next_after", Text),
    Column("is_done", Boolean, nullable=False, server_default=false()),
    Column("advanced_at", INSTANT),
)

suspect = Table(
    "suspect",
    metadata,
    Column("comparison", Text, primary_key=True),
    Column("key", Text, primary_key=True),
    Column("due_at", INSTANT, nullable=False, server_default=_NOW),
    Column("looks", Integer, nullable=False, server_default=_ZERO),
    Column("found", ARRAY(Text), nullable=False, server_default=text("'{}'::text[]")),
    Column("run_id", UUID_TYPE),
    Index("suspect_due", "comparison", "due_at"),
)

difference = Table(
    "difference",
    metadata,
    Column("difference_id", UUID_TYPE, primary_key=True, server_default=_NEW_ID),
    Column("comparison", Text, nullable=False),
    Column("key", Text, nullable=False),
    Column("kind", Text, nullable=False),
    Column("subject", Text, nullable=False),
    Column("ids", JSONB, nullable=False),
    Column("ours", JSONB),
    Column("theirs", JSONB),
    Column("first_seen", INSTANT, nullable=False, server_default=_NOW),
    Column("last_seen", INSTANT, nullable=False, server_default=_NOW),
    Column("closed_at", INSTANT),
    Column("closed_as", Text, CheckConstraint("closed_as IN ('disappeared', 'explained')")),
    Column("reason", Text),
    Column("closed_by", Text),
    Column("gone_at", INSTANT),
    Column("fingerprint", Text),
    Column("revision", Integer, nullable=False, server_default=text("1")),
    CheckConstraint("(closed_at IS NULL) = (closed_as IS NULL)"),
    CheckConstraint(
        "closed_as IS DISTINCT FROM 'explained' OR (reason IS NOT NULL AND closed_by IS NOT NULL)"
    ),
    Index(
        "difference_open",
        "kind",
        "subject",
        unique=True,
        postgresql_where=text("closed_at IS NULL"),
    ),
    Index(
        "difference_explained",
        "kind",
        "subject",
        unique=True,
        postgresql_where=text("closed_as = 'explained' AND gone_at IS NULL"),
    ),
    Index(
        "difference_standing",
        "comparison",
        "key",
        postgresql_where=text("closed_at IS NULL OR (closed_as = 'explained' AND gone_at IS NULL)"),
    ),
    Index("difference_subject", "kind", "subject"),
    Index("difference_listed", "closed_as", "first_seen", "difference_id"),
    Index("difference_of_kind", "kind", "closed_as", "first_seen", "difference_id"),
    Index(
        "difference_of_tenant",
        text("(ids ->> 'tenant'::text)"),
        "closed_as",
        "first_seen",
        "difference_id",
        postgresql_where=text("ids ->> 'tenant' IS NOT NULL"),
    ),
    Index("difference_closed", "closed_at", postgresql_where=text("closed_at IS NOT NULL")),
)

posted = Table(
    "posted",
    metadata,
    Column("account_id", Text, primary_key=True),
    Column("total", _TOTAL, nullable=False),
    Column("last_position", BigInteger, nullable=False),
)

wire_debit = Table(
    "wire_debit",
    metadata,
    Column("transaction_id", Text, primary_key=True),
    Column("postings", Integer, nullable=False),
    Column("amount", _AMOUNT, nullable=False),
    Column("account_id", Text),
)

return_posting = Table(
    "return_posting",
    metadata,
    Column("transaction_id", Text, primary_key=True),
    Column("postings", Integer, nullable=False),
    Column("amount", _AMOUNT, nullable=False),
    Column("account_id", Text, nullable=False),
)

feed_watch = Table(
    "feed_watch",
    metadata,
    Column("feed", Text, primary_key=True),
    Column("position", BigInteger, nullable=False),
    Column("is_behind", Boolean, nullable=False),
    Column("since", INSTANT, nullable=False, server_default=_NOW),
)

LIMITED = {audit: APPEND_ONLY, audit_turn: LOCKED_ONLY}
