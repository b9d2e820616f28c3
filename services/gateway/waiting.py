"""What waits for a person at the gateway."""

from __future__ import annotations

from libs.contracts.operating.overview import WaitingKind
from libs.handling.operating.waiting import counting
from services.gateway.expiry import EXPIRES_SOON
from services.gateway.tables import credentials

COUNTS = (
    # In place of "since when": when the first of them expires.
    counting(WaitingKind.EXPIRING_KEYS, credentials.c.expires_at, EXPIRES_SOON),
)
