"""The metrics of payments: wires by state, and the age of the oldest send whose outcome is not known."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import NoReturn

from prometheus_client import Counter, Gauge

from libs.contracts.wires import WireState
from libs.handling.periodic import repeat, tolerating_outage
from libs.persistence.engine import Database
from services.payments.repository import lists

MEASURE_SECONDS = 15.0
COUNTING_SHARE = 100
"""The pause between two counts is this many times the time that the last one took: counting reads every wire that is
counted.
"""
OPEN = (WireState.PENDING_APPROVAL, WireState.PENDING_SUBMISSION, WireState.SUBMITTED)
"""What a wire does not stay in: few are at any time."""
PAST = (WireState.REJECTED, WireState.RETURNED, WireState.CANCELED, WireState.COMPLETED)
"""In one of these, `completed` as a rule, are nearly all wires that there ever were."""

WIRES = Gauge("bankside_wires", "Wires by state, of all replicas.", ["state"])
OLDEST_UNKNOWN_SECONDS = Gauge(
    "bankside_oldest_unknown_wire_seconds",
    "Age of the oldest send whose outcome is not known; 0 when every one is.",
)
SENDS = Counter("bankside_wire_sends", "Drives of sends, by outcome", ["outcome"])
FEED_REFUSED = Counter(
    "bankside_wire_feed_entries_refused",
    "Feed entries that changed nothing, by reason",
    ["reason"],
)


async def measure_for_ever(database: Database) -> NoReturn:
    """Measure the age, on which alerts depend, every `MEASURE_SECONDS`."""
    await repeat("metrics", lambda: _measure_oldest(database), MEASURE_SECONDS)


async def count_for_ever(database: Database, states: Sequence[WireState]) -> NoReturn:
    """Count the wires in each of these states, every `MEASURE_SECONDS` and as `COUNTING_SHARE` allows.

    `OPEN` and `PAST` are counted side by side, so that the former do not wait for the latter. A count that the server
    cancels, since it takes longer than a statement may, leaves the others as they are.
    """

    async def count() -> None:
        for state in states:
            await tolerating_outage("metrics", partial(_count, database, state))

    await repeat("metrics", count, MEASURE_SECONDS, times_its_duration=COUNTING_SHARE)


async def _measure_oldest(database: Database) -> None:
    async with database.transaction() as connection:
        OLDEST_UNKNOWN_SECONDS.set(await lists.oldest_unknown_seconds(connection))


async def _count(database: Database, state: WireState) -> None:
    async with database.transaction() as connection:
        count = await lists.count_in_state(connection, state)
    WIRES.labels(state.value).set(count)
