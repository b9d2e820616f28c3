"""Metrics: open differences by kind and age, and the age of the last complete run."""

from __future__ import annotations

from typing import NoReturn, get_args

from prometheus_client import Counter, Gauge

from libs.handling.periodic import repeat
from libs.persistence.engine import Database
from services.reconciliation.repository import differences, runs

MEASURE_SECONDS = 15.0

OPEN = Gauge("bankside_differences_open", "Differences that are open, by kind.", ["kind"])
OLDEST_SECONDS = Gauge(
    "bankside_oldest_difference_seconds", "Age of the oldest open difference, by kind.", ["kind"]
)
LAST_RUN_SECONDS = Gauge(
    "bankside_last_reconciliation_seconds",
    "How long ago the last complete run ended; since the first start when there was none.",
)
LONGEST_GAP_SECONDS = Gauge(
    "bankside_reconciliation_longest_gap_seconds",
    "The longest time between the ends of two complete runs, as this process is set: the pause before a run, and the"
    " limit of one.",
)
IN_FLIGHT = Gauge(
    "bankside_reconciliation_in_flight",
    "Records that the last complete run could not compare: a command or a posting was still going to change them, or"
    " they changed between looks.",
)
IN_FLIGHT_SECONDS = Gauge(
    "bankside_reconciliation_in_flight_seconds",
    "How long ago the first of the complete runs ended that have left records in flight one after another, up to the"
    " last one; 0 when the last one left none.",
)
RUNS = Counter("bankside_reconciliation_runs", "Runs that ended, by outcome.", ["outcome"])
for _outcome in get_args(runs.Outcome):
    RUNS.labels(_outcome)
FAILURES = Counter(
    "bankside_reconciliation_failures", "Steps of runs that failed and are tried again."
)


async def measure_for_ever(database: Database) -> NoReturn:
    await repeat("metrics", lambda: _measure(database), MEASURE_SECONDS)


async def _measure(database: Database) -> None:
    async with database.transaction() as connection:
        by_kind = await differences.open_by_kind(connection)
        last_run = await runs.last_complete(connection)
        in_flight_seconds = await runs.in_flight_seconds(connection)
    OPEN.clear()
    OLDEST_SECONDS.clear()
    for kind, (count, seconds) in by_kind.items():
        OPEN.labels(kind).set(count)
        OLDEST_SECONDS.labels(kind).set(seconds)
    LAST_RUN_SECONDS.set(last_run.seconds_ago)
    IN_FLIGHT.set(last_run.in_flight)
    IN_FLIGHT_SECONDS.set(in_flight_seconds)
