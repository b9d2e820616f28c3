"""What waits for a person at the gateway."""

from __future__ import annotations

from datetime import timedelta

from sqlalchemy import Interval, func, literal

from libs.contracts.operating.overview import WaitingKind
from libs.handling.operating.waiting import counting
from services.gateway.expiry import SOON_DAYS
from services.gateway.tables import credentials

COUNTS = (
    # In place of "since when": when the first of them expires.
    counting(
        WaitingKind.EXPIRING_KEYS,
        credentials.c.expires_at,
        credentials.c.revoked_at.is_(None),
        credentials.c.expires_at > func.now(),
        credentials.c.expires_at <= func.now() + literal(timedelta(days=SOON_DAYS), Interval),
    ),
)
