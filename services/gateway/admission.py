"""Admission of verified requests, each once: nonces are recorded and rates counted, many requests in one statement.

The statement is one transaction over all gateway processes' table, so of two equal requests that race on two
processes exactly one passes, and rates are exact. GCRA with a burst of one minute's amount. No key is further ahead
than a minute and a second, also one whose requests were counted before PostgreSQL's clock was set back. A timestamp
that has no partition of nonces (`nonce_partitions.py`) is refused, since a replay would look like the first request.

The nonce of a request over its rate is recorded, too: what was refused must not be carried out later. A key that goes
on beyond its rate, by as much as a minute's amount again, is closed for the class until the minute ends: what it signed
for a time up to `closed_to` never passes and is not recorded, so that it cannot fill the table. Its nonce is looked up:
a copy of a request that was admitted before is told so, since the first one may be carried out.
"""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

from libs.batching import Batcher
from libs.contracts.errors import (
    NonceReused,
    RateLimited,
    TimestampOutOfWindow,
    UnknownSubscriptionKey,
)
from libs.contracts.operation import RateClass
from libs.handling.periodic import tolerating_outage
from libs.persistence.engine import Database
from services.gateway.authentication import Signed

ADMITTED_TOGETHER = 128
FEWEST_BEYOND = 100
"""A key with a small rate is closed after this many requests beyond its rate, within a minute and at one process."""

CLOCK_ERROR_SECONDS = 1e-6
"""Allowed for rounding: `due` is Unix time as a double, exact to a quarter of a microsecond. `_ADMIT` has the same."""

# Rows are written in a fixed order, so that two batches cannot wait for each other. `due` is at most a minute ahead.
# Its bound is a second more, for a batch that read the clock before another one and gets the row after it. Without a
# bound a key would be refused for as long as PostgreSQL's clock was set back.
_ADMIT = """
    WITH asked AS (
        SELECT a.*, a.timestamp >= (SELECT floor FROM nonce_bounds)
                AND a.timestamp < (SELECT ceiling FROM nonce_bounds) AS in_bounds,
            c.revoked_at IS NULL AND (c.expires_at IS NULL OR c.expires_at > clock_timestamp()) AS active,
            CASE WHEN a.class IN ('read', 'session') THEN c.reads_per_minute
                WHEN a.class = 'wire' THEN c.wires_per_minute ELSE c.writes_per_minute END AS quota,
            CASE WHEN a.timestamp <= known.closed_to THEN known.closed_to END AS closed_to
        FROM unnest($1::bigint[], $2::bigint[], $3::text[], $4::text[])
            WITH ORDINALITY AS a (id, timestamp, nonce, class, n)
        JOIN credentials c ON c.id = a.id
        LEFT JOIN rates known ON known.credential_id = a.id AND known.class = a.class
    ), recorded AS (
        INSERT INTO nonces (credential_id, timestamp, nonce)
        SELECT id, timestamp, nonce FROM asked
        WHERE active AND in_bounds AND closed_to IS NULL ORDER BY id, timestamp, nonce
        ON CONFLICT DO NOTHING RETURNING credential_id, timestamp, nonce
    ), fresh AS (
        SELECT asked.*, row_number() OVER (PARTITION BY id, class ORDER BY n) AS place
        FROM asked JOIN recorded r ON r.credential_id = asked.id AND r.timestamp = asked.timestamp
            AND r.nonce = asked.nonce
    ), wanted AS (
        SELECT id, class, quota, count(*) AS requests, extract(epoch FROM clock_timestamp())::float8 AS at
        FROM fresh GROUP BY id, class, quota
    ), granted AS (
        INSERT INTO rates AS r (credential_id, class, due, granted)
        SELECT id, class, at + least(requests, quota) * 60.0 / quota, least(requests, quota)
        FROM wanted ORDER BY id, class
        ON CONFLICT (credential_id, class) DO UPDATE SET (due, granted) = (
            SELECT least(greatest(r.due, w.at), w.at + 61.0) + g * 60.0 / w.quota, g
            FROM wanted w, LATERAL (SELECT greatest(0, least(w.requests,
                floor((60.000001 - (least(greatest(r.due, w.at), w.at + 61.0) - w.at)) * w.quota / 60)))::bigint
                AS g) AS room
            WHERE w.id = r.credential_id AND w.class = r.class)
        RETURNING credential_id, class, due, granted
    )
    SELECT asked.n, asked.active, asked.in_bounds, asked.quota, asked.closed_to, f.place, g.granted,
        g.due - w.at AS ahead
    FROM asked
    LEFT JOIN fresh f ON f.n = asked.n
    LEFT JOIN granted g ON g.credential_id = asked.id AND g.class = asked.class
    LEFT JOIN wanted w ON w.id = asked.id AND w.class = asked.class
    """

_CLOSE = """
    WITH closed AS (
        SELECT credential_id, class, a.closed_to FROM rates
        JOIN unnest($1::bigint[], $2::text[], $3::bigint[]) AS a (id, class, closed_to) USING (class)
        WHERE credential_id = a.id ORDER BY credential_id, class FOR NO KEY UPDATE OF rates
    )
    UPDATE rates r SET closed_to = greatest(r.closed_to, c.closed_to)
    FROM closed c WHERE r.credential_id = c.credential_id AND r.class = c.class
    """

# A scalar subquery is an index lookup in one partition, however many nonces there are.
_USED = """
    SELECT (SELECT true FROM nonces n
            WHERE n.credential_id = a.id AND n.timestamp = a.timestamp AND n.nonce = a.nonce) IS NOT NULL AS is_used
    FROM unnest($1::bigint[], $2::bigint[], $3::text[]) WITH ORDINALITY AS a (id, timestamp, nonce, n)
    ORDER BY a.n
    """


class AdmissionRequest(NamedTuple):
    """One request to be admitted. Of several in one batch with the same key, timestamp and nonce, all but the first are
    refused as reused.
    """

    credential_id: int
    timestamp: int
    nonce: str
    rate_class: RateClass


@dataclass(frozen=True, slots=True)
class Rate:
    """What is left of a key's rate after a request; the RateLimit headers."""

    limit: int
    remaining: int
    reset_seconds: int

    def headers(self) -> dict[str, str]:
        return {
            "RateLimit-Limit": str(self.limit),
            "RateLimit-Remaining": str(self.remaining),
            "RateLimit-Reset": str(self.reset_seconds),
        }


@dataclass(frozen=True, slots=True)
class _AdmissionResult:
    """Whether a request is admitted, and why not: the key is not active, the timestamp has no nonces, the nonce is not
    fresh, or the rate does not allow it.
    """

    active: bool
    in_bounds: bool
    fresh: bool
    allowed: bool
    rate: Rate | None
    retry_after_seconds: int = 1
    closed: bool = False
    """The class is closed for the key, and the nonce was not recorded; it may have been before."""


class Admission:
    """Admits each signed request at most once, within the rate of its key."""

    def __init__(self, database: Database) -> None:
        self._database = database
        # One at a time: two would wait for each other at the row of a busy key's rate, and be half as large.
        self._batcher = Batcher(self._admit, name="admission", limit=ADMITTED_TOGETHER)
        # Apart from admission: a key that is closed does not delay those that are not.
        self._lookups = Batcher(self._are_used, name="used-nonces", limit=ADMITTED_TOGETHER)
        self._minute = 0
        self._beyond: Counter[tuple[int, RateClass]] = Counter()
        """Requests of this minute that were over their rate, at this process."""

    async def admit(self, signed: Signed, rate_class: RateClass) -> Rate:
        """Record the nonce and count the request.

        Raises:
            UnknownSubscriptionKey: the key was revoked or ran out in the meantime.
            TimestampOutOfWindow: the nonces of that time are not kept any more, or not yet.
            NonceReused: the nonce was there already.
            RateLimited: too many, with Retry-After.
        """
        request = AdmissionRequest(signed.credential.id, signed.timestamp, signed.nonce, rate_class)
        result = await self._batcher.submit(request)
        if not result.active:
            raise UnknownSubscriptionKey
        if not result.in_bounds:
            raise TimestampOutOfWindow(extra={"server_time": int(time.time())})
        if not result.fresh or result.rate is None:
            raise NonceReused
        if result.closed and await self._lookups.submit(request):
            raise NonceReused
        if not result.allowed:
            headers = result.rate.headers()
            raise RateLimited(headers={**headers, "Retry-After": str(result.retry_after_seconds)})
        return result.rate

    async def _admit(self, requests: list[AdmissionRequest]) -> list[_AdmissionResult]:
        distinct: dict[tuple[int, int, str], AdmissionRequest] = {}
        for request in requests:
            distinct.setdefault((request.credential_id, request.timestamp, request.nonce), request)
        sent = list(distinct.values())
        async with self._database.driver() as connection:
            rows = await connection.fetch(
                _ADMIT,
                [request.credential_id for request in sent],
                [request.timestamp for request in sent],
                [request.nonce for request in sent],
                [request.rate_class.value for request in sent],
            )
        decided = [(sent[row["n"] - 1], row) for row in rows]
        if closing := self._closing(decided):
            # What was admitted is recorded: it does not fail when this does, and the next refusal tries again.
            await tolerating_outage("admission", partial(self._close, closing))
        results = {id(request): _result_of(request, row) for request, row in decided}
        reused = _AdmissionResult(
            active=True, in_bounds=True, fresh=False, allowed=False, rate=None
        )
        return [results.get(id(request), reused) for request in requests]

    async def _are_used(self, requests: list[AdmissionRequest]) -> list[bool]:
        """Whether their nonces are recorded. Nothing is written."""
        async with self._database.driver() as connection:
            rows = await connection.fetch(
                _USED,
                [request.credential_id for request in requests],
                [request.timestamp for request in requests],
                [request.nonce for request in requests],
            )
        return [row["is_used"] for row in rows]

    async def _close(self, closing: Mapping[tuple[int, RateClass], int]) -> None:
        async with self._database.driver() as connection:
            await connection.execute(
                _CLOSE,
                [credential_id for credential_id, _ in closing],
                [rate_class.value for _, rate_class in closing],
                list(closing.values()),
            )

    def _closing(
        self, decided: Iterable[tuple[AdmissionRequest, Mapping[str, Any]]]
    ) -> dict[tuple[int, RateClass], int]:
        """The keys and classes to close, each up to this time."""
        now = int(time.time())
        if now // 60 != self._minute:
            self._minute = now // 60
            self._beyond.clear()
        closing: dict[tuple[int, RateClass], int] = {}
        for request, row in decided:
            if row["place"] is None or row["place"] <= row["granted"]:
                continue
            key = (request.credential_id, request.rate_class)
            self._beyond[key] += 1
            if self._beyond[key] > max(row["quota"], FEWEST_BEYOND):
                closing[key] = max(closing.get(key, 0), request.timestamp, (self._minute + 1) * 60)
        return closing


def _result_of(request: AdmissionRequest, row: Mapping[str, Any]) -> _AdmissionResult:
    if row["closed_to"] is not None:
        # By the caller's clock, with which it signs.
        left = row["closed_to"] + 1 - request.timestamp
        nothing = Rate(limit=row["quota"], remaining=0, reset_seconds=left)
        return _AdmissionResult(
            row["active"], row["in_bounds"], True, False, nothing, left, closed=True
        )
    if row["place"] is None:
        return _AdmissionResult(
            row["active"], row["in_bounds"], fresh=False, allowed=False, rate=None
        )
    step = 60.0 / row["quota"]
    left = math.floor((60.0 + CLOCK_ERROR_SECONDS - row["ahead"]) / step)
    left = max(0, min(left, row["quota"] - row["granted"]))
    allowed = row["place"] <= row["granted"]
    rate = Rate(
        limit=row["quota"],
        remaining=left + max(0, row["granted"] - row["place"]) if allowed else 0,
        reset_seconds=max(1, math.ceil(row["ahead"])),
    )
    wait = max(1, math.ceil(row["ahead"] + step - 60.0))
    return _AdmissionResult(True, True, True, allowed, rate, wait)
