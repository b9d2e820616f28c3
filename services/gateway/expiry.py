"""Which keys expire soon, and how many, as metrics: a key that runs out unnoticed stops its caller."""

from __future__ import annotations

import math
from datetime import timedelta
from typing import NoReturn

from prometheus_client import Gauge
from sqlalchemy import Interval, and_, func, literal

from libs.handling.periodic import repeat
from libs.persistence.engine import Database
from services.gateway.tables import credentials

LOOK_SECONDS = 60.0
SOON_DAYS = 14
EXPIRES_SOON = and_(
    credentials.c.revoked_at.is_(None),
    credentials.c.expires_at > func.now(),
    credentials.c.expires_at <= func.now() + literal(timedelta(days=SOON_DAYS), Interval),
)

EXPIRING_SOON = Gauge(
    "bankside_gateway_keys_expiring_soon", f"Active keys that expire within {SOON_DAYS} days."
)
NEXT_SECONDS = Gauge(
    "bankside_gateway_next_key_expires_seconds",
    "Until the next of the active keys expires; +Inf when none ever does.",
)

_EXPIRING = """
    SELECT count(*) FILTER (WHERE expires_at <= now() + make_interval(days => $1)) AS soon,
        extract(epoch FROM min(expires_at) - now())::float8 AS next
    FROM credentials WHERE revoked_at IS NULL AND expires_at > now()
    """


async def measure_for_ever(database: Database) -> NoReturn:
    await repeat("expiry", lambda: measure(database), LOOK_SECONDS)


async def measure(database: Database) -> None:
    async with database.driver() as connection:
        row = await connection.fetchrow(_EXPIRING, SOON_DAYS)
    assert row is not None
    EXPIRING_SOON.set(row["soon"])
    NEXT_SECONDS.set(math.inf if row["next"] is None else row["next"])
