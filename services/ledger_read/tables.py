"""ledger_read's tables, as its migrations make them; `make check` compares the two."""

from __future__ import annotations

from sqlalchemy import BigInteger, CheckConstraint, Column, MetaData, Table, Text

from libs.persistence.grants import APPEND_ONLY, LOCKED_ONLY
from libs.persistence.tables import AUDIT, FEEDS, OUTBOX, leader_lease

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

LIMITED = {audit: APPEND_ONLY, audit_turn: LOCKED_ONLY}
