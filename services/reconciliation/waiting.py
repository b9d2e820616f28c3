"""What waits for a person in reconciliation."""

from __future__ import annotations

from libs.contracts.operating.overview import WaitingKind
from libs.handling.operating.waiting import counting
from services.reconciliation.tables import difference

COUNTS = (
    counting(WaitingKind.DIFFERENCES, difference.c.first_seen, difference.c.closed_at.is_(None)),
)
