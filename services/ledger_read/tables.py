"""ledger_read's tables, as its migrations make them; `make check` compares the two."""

from __future__ import annotations

from sqlalchemy import BigInteger, CheckConstraint, Column, MetaData, Table, Text

from libs.persistence.grants import APPEND_ONLY
from libs.persistence.tables import FEEDS, OUTBOX, leader_lease
from libs.persistence.tables import audit as shared_audit

metadata = MetaData()

audit = shared_audit.to_metadata(metadata)

for _table in (*OUTBOX, *FEEDS, leader_lease):
    _table.to_metadata(metadata)

resource_sequences = Table(
    "resource_sequences",
    metadata,
    Column("kind", Text, primary_key=True),
    Column("resource_id", Text, primary_key=True),
    Column("sequence", BigInteger, CheckConstraint("sequence > 0"), nullable=False),
)

LIMITED = {audit: APPEND_ONLY}
