"""Metrics of deliveries: the backlog and its age, results of attempts, the delay of first attempts."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import NoReturn

from prometheus_client import Counter, Gauge, Histogram
from sqlalchemy import bindparam, func, select, true

from libs.handling.periodic import repeat
from libs.persistence.engine import Database
from libs.persistence.tables import INSTANT
from services.webhook_dispatcher.ports import AttemptOutcome
from services.webhook_dispatcher.tables import ACTIVE, PENDING, delivery, subscription

MEASURE_SECONDS = 15.0
COUNTING_SHARE = 100
"""Counting takes at most 1/COUNTING_SHARE of the time, as far as `LONGEST_PAUSE_SECONDS` allows."""
LONGEST_PAUSE_SECONDS = 60.0

MOST_COUNTED = 1_000_000

DUE = Gauge(
    "bankside_webhook_due",
    f"Deliveries that are due and not in flight, of all replicas; {MOST_COUNTED} at most.",
)
IN_FLIGHT = Gauge("bankside_webhook_in_flight", "Deliveries that are claimed, of all replicas.")
OLDEST_DUE_SECONDS = Gauge(
    "bankside_webhook_oldest_due_seconds",
    "How long the oldest delivery of an active subscription has been due, of failing endpoints too; 0 when none is.",
)
ATTEMPTS = Counter(
    "bankside_webhook_attempts", "Attempts that were recorded, by verdict.", ["verdict"]
)
for _outcome in AttemptOutcome:
    ATTEMPTS.labels(_outcome.value)  # alerts compare them: at 0 from the start
CONCLUDED = Counter(
    "bankside_webhook_concluded", "Deliveries that are over, succeeded or failed.", ["how"]
)
FIRST_ATTEMPT_SECONDS = Histogram(
    "bankside_webhook_first_attempt_seconds",
    "From the recording of a delivery to the beginning of its first attempt.",
    buckets=(0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 15, 60, 300, 3600),
)
ATTEMPT_SECONDS = Histogram(
    "bankside_webhook_attempt_seconds",
    "Time of one attempt, from the connection to the end of the answer.",
    buckets=(0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 15, 30),
)
INGEST_BATCH = Histogram(
    "bankside_webhook_ingest_batch",
    "Events recorded in one transaction.",
    buckets=(1, 2, 4, 8, 16, 32, 64, 128, 256),
)
EVENTS_RECORDED = Counter(
    "bankside_webhook_events", "Events from the broker: new, known already, or refused.", ["how"]
)
DELIVERIES_ADDED = Counter("bankside_webhook_deliveries_added", "Deliveries of new events.")
CLAIMS_LOST = Counter(
    "bankside_webhook_claims_lost", "Attempts not recorded, since their lease had ended."
)
LEASES_EXPIRED = Counter("bankside_webhook_leases_expired", "Leases that ended unfinished.")
MADE_UNAVAILABLE = Counter(
    "bankside_webhook_made_unavailable",
    "Subscriptions that became unavailable: their endpoint failed for days, or answered 410.",
)
EVENT_DAYS_KEPT = Counter(
    "bankside_webhook_event_days_kept",
    "Days of events beyond the retention that were not dropped, since deliveries of theirs are pending or the table was"
    " in use; counted at each look, every ten minutes.",
)

_IS_DUE = (
    delivery.c.state == PENDING,
    delivery.c.claim.is_(None),
    delivery.c.due_at <= bindparam("now", type_=INSTANT),
)
_due = select(delivery.c.id).where(*_IS_DUE).limit(MOST_COUNTED).subquery("due")
# The first of each subscription, which the index has, since all that are due may be a hundred million.
_first = (
    select(delivery.c.due_at)
    .where(delivery.c.subscription_id == subscription.c.id, *_IS_DUE)
    .order_by(delivery.c.due_at)
    .limit(1)
    .lateral("first")
)
_IN_FLIGHT = select(func.count()).select_from(delivery).where(delivery.c.claim.is_not(None))
_MEASURE = select(
    select(func.count()).select_from(_due).scalar_subquery(),
    select(func.min(_first.c.due_at))
    .select_from(subscription.join(_first, true()))
    .where(subscription.c.status == ACTIVE)
    .scalar_subquery(),
    _IN_FLIGHT.scalar_subquery(),
)


async def measure(database: Database, clock: Callable[[], datetime]) -> None:
    async with database.transaction() as connection:
        now = clock()
        found = await connection.execute(_MEASURE, {"now": now})
    due, oldest_due_at, in_flight = found.one()
    DUE.set(due)
    IN_FLIGHT.set(in_flight)
    OLDEST_DUE_SECONDS.set((now - (oldest_due_at or now)).total_seconds())


async def measure_for_ever(database: Database, clock: Callable[[], datetime]) -> NoReturn:
    await repeat(
        "metrics",
        lambda: measure(database, clock),
        MEASURE_SECONDS,
        times_its_duration=COUNTING_SHARE,
        longest_pause_seconds=LONGEST_PAUSE_SECONDS,
    )
