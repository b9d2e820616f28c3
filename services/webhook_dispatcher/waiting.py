"""What waits for a person in the dispatcher."""

from __future__ import annotations

from libs.contracts.operating.overview import WaitingKind
from libs.handling.operating.waiting import counting
from services.webhook_dispatcher.tables import UNAVAILABLE, subscription

COUNTS = (
    counting(
        WaitingKind.UNAVAILABLE_SUBSCRIPTIONS,
        subscription.c.updated_at,
        subscription.c.status == UNAVAILABLE,
    ),
)
