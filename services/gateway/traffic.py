"""Requests of partners and customers by minute: noted in memory, and added to those of the other processes every 10 s.

What a process that dies has not written is lost, at most 10 s of it, and as much may be counted twice where the
connection to the database is lost: these are figures for charts.
"""

from __future__ import annotations

import bisect
import time
from collections import Counter
from collections.abc import Mapping
from typing import Any, NamedTuple, NoReturn

from libs.contracts.operating.traffic import LATENCY_BOUNDS_MS, MOST_MINUTES
from libs.handling.periodic import repeat
from libs.persistence.engine import Database

WRITE_SECONDS = 10.0
KEPT_UNWRITTEN = 10_000
"""Kinds of requests while the database is away: those of more than an hour."""

# In a fixed order, so that two processes cannot wait for each other.
_ADD = """
    INSERT INTO traffic AS t (minute, answer, latency, requests)
    SELECT * FROM unnest($1::bigint[], $2::smallint[], $3::smallint[], $4::bigint[]) ORDER BY 1, 2, 3
    ON CONFLICT (minute, answer, latency) DO UPDATE SET requests = t.requests + excluded.requests
    """
_FORGET = "DELETE FROM traffic WHERE minute < $1"
_SINCE = "SELECT minute, answer, latency, requests FROM traffic WHERE minute >= $1"


class Kind(NamedTuple):
    """What is counted together: minutes since 1970, the hundreds of the status, and the place among the bounds."""

    minute: int
    answer: int
    latency: int


class TrafficCounts:
    """The requests since they were last written."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._new: Counter[Kind] = Counter()

    def note(self, status: int, seconds: float) -> None:
        longest = len(LATENCY_BOUNDS_MS) - 1
        latency = min(bisect.bisect_left(LATENCY_BOUNDS_MS, seconds * 1000), longest)
        kind = Kind(int(time.time()) // 60, status // 100, latency)
        if kind in self._new or len(self._new) < KEPT_UNWRITTEN:
            self._new[kind] += 1

    async def write_for_ever(self) -> NoReturn:
        await repeat("traffic", self.write, WRITE_SECONDS)

    async def write(self) -> None:
        """What was noted is kept when this fails, and written by the next call: twice, where this one was committed and
        the answer is lost.
        """
        sent = Counter(self._new)
        if not sent:
            return
        kinds = list(sent)
        async with self._database.driver_transaction() as connection:
            await connection.execute(
                _ADD,
                [kind.minute for kind in kinds],
                [kind.answer for kind in kinds],
                [kind.latency for kind in kinds],
                list(sent.values()),
            )
            await connection.execute(_FORGET, int(time.time()) // 60 - MOST_MINUTES)
        self._new -= sent

    async def since(self, minute: int) -> list[Mapping[str, Any]]:
        """The rows of this minute and later ones, of all processes."""
        async with self._database.driver() as connection:
            return list(await connection.fetch(_SINCE, minute))
