"""What waits for a person in payments."""

from __future__ import annotations

from sqlalchemy import literal

from libs.contracts.operating.overview import WaitingKind
from libs.contracts.wires import WireState
from libs.handling.operating.waiting import counting
from services.payments.tables import wires

COUNTS = (
    counting(
        WaitingKind.UNKNOWN_WIRES,
        wires.c.send_begun_at,
        # A literal, as in the condition of the partial index.
        wires.c.state == literal(WireState.PENDING_SUBMISSION.value, literal_execute=True),
        wires.c.send_begun_at.is_not(None),
    ),
    counting(
        WaitingKind.WIRES_FOR_APPROVAL,
        wires.c.created_at,
        wires.c.state == literal(WireState.PENDING_APPROVAL.value, literal_execute=True),
    ),
)
